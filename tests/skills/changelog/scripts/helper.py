"""Prints the version that follows another one after changes of some kinds."""

import re
import sys


def following(version, kinds):
    match = re.fullmatch(r"v?(\d+)\.(\d+)\.(\d+)", version)
    if not match:
        sys.exit(f"error: not a version such as 1.4.2: {version!r}")
    major, minor, patch = map(int, match.groups())
    if "breaking" in kinds and major > 0:
        return f"{major + 1}.0.0"
    if "breaking" in kinds or "feat" in kinds:
        return f"{major}.{minor + 1}.0"
    if kinds:
        return f"{major}.{minor}.{patch + 1}"
    return f"{major}.{minor}.{patch}"


def main():
    if len(sys.argv) < 2:
        sys.exit("usage: helper.py VERSION [KIND]...")
    print(following(sys.argv[1], set(sys.argv[2:])))


if __name__ == "__main__":
    main()
