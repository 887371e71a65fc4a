"""What a sandbox allows: `Policy`, `Limits`, `Mount`."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any, Literal, TypedDict, cast

from ._values import to_plain
from .errors import ConfigError
from .tools import Submit, Tool, collect

StrPath = str | os.PathLike[str]

AuditEvent = dict[str, Any]
"""An access that was allowed or denied: `time`, `session`, `allowed`, `access`, `reason`, and what
belongs to that kind of access."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Limits of a session. `None` stands for the default of the server.

    `docs/limits.md` says what happens when one is exceeded.
    """

    run_time: float | None = None
    """Seconds that a run may take, 30 by default. Time in which the guest only waits for tools is
    not counted."""
    host_time: float | None = None
    """Seconds that a run may wait for tools; no limit by default."""
    grace: float | None = None
    """Seconds from an interrupt until the session is killed, 0.5 by default."""
    memory: int | None = None
    """Bytes, 1 GiB by default and at least 64 MiB."""
    stdout: int | None = None
    """Bytes of the standard output that are kept, 1 MiB by default."""
    stderr: int | None = None
    """Bytes of the standard error that are kept, 1 MiB by default."""
    value: int | None = None
    """Bytes of a value that crosses, 256 MiB by default."""
    calls: int | None = None
    """Bytes of the arguments of unfinished tool calls, 256 MiB by default."""
    source: int | None = None
    """Bytes of a cell's code, 16 MiB by default."""
    display_bytes: int | None = None
    """Bytes of a run's displays together, 32 MiB by default."""
    displays: int | None = None
    """Displays of a run that are kept, 100 by default."""
    files: int | None = None
    """Files written by a run that are listed, 1,000 by default."""
    output_lines: int | None = None
    """Lines of each stream that are kept, 1,000,000 by default."""
    tool_calls: int | None = None
    """Tool calls in a run, 10,000 by default."""
    concurrent_tools: int | None = None
    """Tool calls at once, 16 by default. Later ones wait."""
    refusals: int | None = None
    """Refused requests in a run, 10,000 by default."""

    def to_wire(self) -> dict[str, Any]:
        """Returns the limits that are set."""
        names = type(self).__dataclass_fields__
        found = {name: getattr(self, name) for name in names}
        return {name: value for name, value in found.items() if value is not None}


@dataclass(frozen=True, slots=True)
class Mount:
    """A directory of the host that guests see."""

    path: StrPath
    """The directory. It is looked up when a session starts."""
    _: KW_ONLY
    mode: Literal["ro", "overlay", "rw"] = "ro"
    """`ro`; `overlay`, where what guests write stays in memory; `rw`."""
    quota_bytes: int | None = None
    """Bytes that a session may write: 1 GiB for `rw`, 256 MiB for `overlay` by default."""
    quota_files: int | None = None
    """Files that a session may create, 10,000 by default."""


class Policy(TypedDict, total=False):
    """The keywords of `Sandbox` and `run`. Everything is denied unless one allows it."""

    tools: Iterable[Callable[..., Any] | Tool] | Mapping[str, Callable[..., Any] | Tool]
    """Functions of the host that guests can call."""
    submit: Mapping[str, Any] | Submit | None
    """The fields of `SUBMIT(...)`, by which a guest ends a run with a result: name to type."""
    mounts: Mapping[str, StrPath | Mount]
    """Directories by their path in the guest. A plain path is read-only."""
    allow_net: Iterable[str]
    """Rules such as `example.com` or `https://example.com:8443`: `docs/permissions.md`."""
    deny_net: Iterable[str]
    """Rules that go before those of `allow_net`."""
    allow_public_net: bool
    """Whether every public address may be asked."""
    headers: Mapping[str, Mapping[str, str]]
    """Headers by origin that the host adds to requests. Guests do not see them."""
    ca_files: Iterable[StrPath]
    """Files with further certificate authorities to trust."""
    env: Mapping[str, str]
    """Environment variables of guests."""
    allow_env: Iterable[str]
    """Names of variables that guests see with the host's values."""
    packages: Iterable[str]
    """Requirements, such as `pandas`, that every session has from its start."""
    allow_packages: Iterable[str]
    """Requirements that are loaded when the guest imports them."""
    preload: Iterable[str]
    """Packages or modules that are imported once, for all sessions."""
    wheels: Iterable[StrPath]
    """Directories with wheels."""
    offline: bool
    """Whether packages come from the cache and from `wheels` only."""
    limits: Limits
    """Limits of each session."""
    isolation: Literal["process", "thread"]
    """Where guests run: in a locked-down process each, the default, or on threads of the server."""
    require: Iterable[str]
    """Layers of isolation, such as `seccomp`, without which nothing runs."""
    on_audit: Callable[[AuditEvent], object]
    """Called for each access that was allowed or denied, in a thread that waits for a session."""


class Compiled:
    """A policy that was read: what the server gets, and what stays here."""

    __slots__ = ("on_audit", "tools", "wire")

    def __init__(self, policy: Policy) -> None:
        values = cast("dict[str, Any]", {**policy})
        for name in values:
            if name not in Policy.__annotations__:
                known = ", ".join(Policy.__annotations__)
                raise TypeError(f"a policy has no key {name!r}; it has {known}")
        self.tools: dict[str, Tool] = collect(values.pop("tools", None) or ())
        self.on_audit: Callable[[AuditEvent], object] | None = values.pop("on_audit", None)
        wire: dict[str, Any] = {}
        if self.tools:
            wire["tools"] = [tool.to_wire() for tool in self.tools.values()]
        if self.on_audit is not None:
            wire["audit"] = True
        for name, value in values.items():
            if value is not None:
                wire[name] = _CONVERTERS.get(name, _as_is)(name, value)
        self.wire: dict[str, Any] = to_plain(wire, "policy")


def submit_to_wire(fields: Mapping[str, Any] | Submit) -> dict[str, Any]:
    """Returns a submission as `docs/serve.md` describes it."""
    return (fields if isinstance(fields, Submit) else Submit(fields)).to_wire()


def _as_is(_: str, value: Any) -> Any:
    return value


def _texts(name: str, value: Any) -> list[str]:
    if isinstance(value, (str, bytes)):
        raise ConfigError(f"`{name}` is {value!r}, and has to be a list", f"`{name}=[{value!r}]`")
    return list(value)


def _paths(name: str, value: Any) -> list[str]:
    return [os.path.abspath(path) for path in _texts(name, value)]


def _limits(name: str, value: Any) -> dict[str, Any]:
    if not isinstance(value, Limits):
        raise ConfigError(f"`{name}` is {value!r}, and has to be `Limits(...)`")
    return value.to_wire()


def _mounts(_: str, value: Mapping[str, Any]) -> list[dict[str, Any]]:
    mounts: list[dict[str, Any]] = []
    for guest, mount in value.items():
        if not isinstance(mount, Mount):
            mount = Mount(mount)
        # The server may have another working directory than the program has by now.
        wire: dict[str, Any] = {"host": os.path.abspath(mount.path), "guest": guest}
        wire["mode"] = mount.mode
        if mount.quota_bytes is not None:
            wire["quota_bytes"] = mount.quota_bytes
        if mount.quota_files is not None:
            wire["quota_files"] = mount.quota_files
        mounts.append(wire)
    return mounts


def _headers(_: str, value: Mapping[str, Mapping[str, str]]) -> dict[str, dict[str, str]]:
    return {origin: dict(headers) for origin, headers in value.items()}


_CONVERTERS: dict[str, Callable[[str, Any], Any]] = {
    "submit": lambda _, value: submit_to_wire(value),
    "mounts": _mounts,
    "allow_net": _texts,
    "deny_net": _texts,
    "headers": _headers,
    "ca_files": _paths,
    "allow_env": _texts,
    "packages": _texts,
    "allow_packages": _texts,
    "preload": _texts,
    "wheels": _paths,
    "limits": _limits,
    "require": _texts,
}
