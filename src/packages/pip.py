"""Runs pip with what it has no options for: the environment markers of another interpreter, and
wheels that stand before all others of their names. If it fails, says of which packages the index
has files of which none fits."""

import json
import sys

# Nothing is imported from the working directory.
sys.path[:] = [path for path in sys.path if path]

from pip._vendor.packaging import markers

environment = json.loads(sys.argv.pop(1))
markers.default_environment = lambda: dict(environment)

with open(sys.argv.pop(1), encoding="utf-8") as lines:
    preferred = set(lines.read().split())

from pip._internal.cli.main import main
from pip._internal.cli.req_command import RequirementCommand
from pip._internal.index.package_finder import CandidateEvaluator, LinkEvaluator
from pip._internal.utils.filetypes import ARCHIVE_EXTENSIONS

# Before 24.1, `pip install --dry-run` compares `Requires-Python` with the Python that runs pip, and
# then refuses packages or falls back to old versions of them.
make_resolver = RequirementCommand.make_resolver.__func__
version = tuple(map(int, environment["python_full_version"].split(".")))
RequirementCommand.make_resolver = classmethod(
    lambda cls, *args, **named: make_resolver(cls, *args, **{**named, "py_version_info": version})
)

# pip tries the candidates of a name in this order.
sort_key = CandidateEvaluator._sort_key
CandidateEvaluator._sort_key = lambda self, candidate: (
    candidate.link.url_without_fragment in preferred,
    *sort_key(self, candidate),
)

found, fitting = set(), set()
UNFIT = {"format_unsupported", "platform_mismatch", "requires_python_mismatch"}
evaluate_link = LinkEvaluator.evaluate_link


def noted(self, link):
    result = evaluate_link(self, link)
    # Before 23.1 it is whether the link fits.
    kind = getattr(result[0], "name", None)
    # pip asks of pages and directories, too.
    is_file_of_index = link.splitext()[1] in ARCHIVE_EXTENSIONS and not link.is_file
    if kind in UNFIT and is_file_of_index:
        found.add(self.project_name)
    elif kind == "candidate":
        fitting.add(self.project_name)
    return result


LinkEvaluator.evaluate_link = noted

status = main()
if status:
    for name in sorted(found - fitting):
        print(f"isolet: no file fits: {name}", file=sys.stderr)
sys.exit(status)
