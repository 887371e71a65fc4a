"""What a node says on standard error when it has started."""

from __future__ import annotations

import json


def address_in(line: str) -> str | None:
    """Returns where a node listens, if the line says so, in any format of its log."""
    if line.startswith("{"):
        said = json.loads(line)
        return str(said["address"]) if said.get("event") == "started" else None
    _, listens, address = line.partition(" listening at ")
    return address.strip() if listens else None
