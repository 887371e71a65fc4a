"""Runs pip with what it has no options for: the environment markers of another interpreter, and
wheels that stand before all others of their names."""

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
from pip._internal.index.package_finder import CandidateEvaluator

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

sys.exit(main())
