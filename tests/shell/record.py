#!/usr/bin/env python3
"""Runs the cases of the shell with the bash and the GNU tools of this machine.

    tests/shell/record.py            # writes into cases/*.txt what each case prints and leaves
    tests/shell/record.py --check    # compares, and fails if a case did something else

A file has the cases of one topic. A line that starts with `%% ` begins a part of a case. Somebody
writes the first three parts, and this program the others:

    %% case NAME             the script for `bash -c`; a blank line ends the case
    %% stdin                 only if the script gets any
    %% stdout                what it printed, unless that is nothing
    %% status N              its exit status, unless that is 0
    %% file NAME             the content of a file that is there afterwards
    %% directory NAME        an empty directory
    %% link NAME -> TARGET   a symbolic link

After a NAME, `mode 755` is a mode other than 644 (755 for a directory). After `stdout` or `file`,
`without a final newline` or `in hexadecimal` says how the text stands for the content.

A case runs in `/tmp/case`, which is empty, with the environment below. Its errors are not recorded.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

CASES = Path(__file__).parent / "cases"
PLACE = Path("/tmp/case")
ENVIRONMENT = {"HOME": "/tmp", "LC_ALL": "C.UTF-8", "PATH": "/usr/bin:/bin", "TZ": "UTC"}


def part(name: str, content: bytes) -> str:
    """A part with content: the line that begins it, and the text."""
    try:
        text = content.decode()
    except UnicodeDecodeError:
        text = "\0"
    if re.search(r"[^\n\t\x20-\x7e\x80-\U0010ffff]", text):
        lines = "\n".join(content[i : i + 32].hex(" ") for i in range(0, len(content), 32))
        return f"%% {name} in hexadecimal\n{lines}\n"
    if re.search(r"^%% ", text, re.MULTILINE):
        sys.exit(f"{name}: a line of the content starts like a part")
    if content and not text.endswith("\n"):
        return f"%% {name} without a final newline\n{text}\n"
    return f"%% {name}\n{text}"


def entry(path: Path) -> str:
    """The part for a file, a link or an empty directory; nothing for another directory."""
    name = str(path.relative_to(PLACE))
    if path.is_symlink():
        return f"%% link {name} -> {path.readlink()}\n"
    mode = path.stat().st_mode & 0o7777
    if mode != (0o755 if path.is_dir() else 0o644):
        name += f" mode {mode:o}"
    if path.is_file():
        return part(f"file {name}", path.read_bytes())
    return "" if any(path.iterdir()) else f"%% directory {name}\n"


def record(case: str) -> str:
    """The case with the parts that this machine's bash makes."""
    parts = re.split(r"^%% ", case, flags=re.MULTILINE)
    name, script = parts[0].split("\n", 1)
    stdin = next((p.removeprefix("stdin\n") for p in parts[1:] if p.startswith("stdin\n")), "")
    shutil.rmtree(PLACE, ignore_errors=True)
    PLACE.mkdir()
    # A process that stays behind must not hold the pipe: the output goes to a file.
    with open(f"{PLACE}.out", "w+b") as out:
        done = subprocess.run(
            ["bash", "-c", script.rstrip("\n")],
            cwd=PLACE,
            env=ENVIRONMENT,
            input=stdin.encode(),
            stdout=out,
            stderr=subprocess.DEVNULL,
            timeout=30,
        )
        out.seek(0)
        stdout = out.read()
    os.unlink(f"{PLACE}.out")
    text = f"{name}\n{script.rstrip()}\n"
    if stdin:
        text += f"%% stdin\n{stdin.rstrip(chr(10))}\n"
    if stdout:
        text += part("stdout", stdout)
    if done.returncode:
        text += f"%% status {done.returncode}\n"
    for path in sorted(PLACE.rglob("*")):
        text += entry(path)
    shutil.rmtree(PLACE)
    return text


def main() -> None:
    os.umask(0o022)
    total, different = 0, []
    for file in sorted(CASES.glob("*.txt")):
        old = file.read_text()
        cases = old.removeprefix("%% case ").split("\n%% case ")
        names = [case.split("\n")[0] for case in cases]
        if len(set(names)) < len(names):
            sys.exit(f"{file.name}: two cases have the same name")
        new = "\n".join("%% case " + record(case) for case in cases)
        total += len(cases)
        if new != old:
            different.append(file.name)
            if "--check" not in sys.argv:
                file.write_text(new)
    print(f"{total} cases; changed: {' '.join(different) or 'none'}")
    if different and "--check" in sys.argv:
        sys.exit(1)


if __name__ == "__main__":
    main()
