"""What a sandbox allows: `Policy`, `Limits`, `Mount`."""

from __future__ import annotations

import datetime
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any, Literal, TypedDict, cast

from ._values import to_plain
from .errors import ConfigError
from .tools import Submit, Tool, collect

StrPath = str | os.PathLike[str]

AuditEvent = dict[str, Any]
"""An access that was allowed or denied: `time` in seconds since 1970, the number of the `session`,
`allowed`, `access`, `reason`, and what belongs to that kind of access. `access` is `network`,
`file`, `package`, `module`, `tool`, or `dropped` for the number of events beyond 100,000 in a
run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Limits of a session: `Limits(run_time=5, memory_bytes=256 << 20)`.

    `None` stands for the default. A value that makes no sense, such as less than 64 MiB of memory,
    is a `ConfigError` of the first use of a session. `docs/reference/limits.md` has the details.
    """

    run_time: float | None = None
    """Seconds that a run may take, 30 by default, without the time in which tools run.

    Past it the guest gets `KeyboardInterrupt`, and `Execution.status` is `timeout`. The session
    goes on if the guest ends within `grace`."""
    host_time: float | None = None
    """Seconds in which tools of a run may run, 3,600 by default. Past it: as with `run_time`."""
    grace: float | None = None
    """Seconds from an interrupt until the session is killed, 0.5 by default.

    Then the session goes on from its last checkpoint, see `Policy.checkpoint`."""
    memory_bytes: int | None = None
    """Bytes of the interpreter's memory and files, 1 GiB by default and at least 64 MiB.

    Past it the guest gets `MemoryError`, or `OSError` for a file, and the session goes on. If
    JavaScript fills its part, `Execution.status` is `memory` and the interpreter has ended, see
    `Policy.checkpoint`."""
    stdout_bytes: int | None = None
    """Bytes of the standard output that are kept, 1 MiB by default.

    Of more, the start and the end are kept, and `Execution.truncated` counts the rest. The run goes
    on. `Session.stream` and `on_stdout` get all of it."""
    stderr_bytes: int | None = None
    """Bytes of the standard error that are kept, 1 MiB by default.

    Past it: as with `stdout_bytes`."""
    value_bytes: int | None = None
    """Bytes of a value or file that crosses, 256 MiB by default.

    A larger result leaves `Execution.value_error`, a larger argument or result of a tool is a
    `ValueError` in the guest, and anything else is a `TransferError`."""
    call_bytes: int | None = None
    """Bytes of the arguments of unfinished tool calls, 256 MiB by default.

    A call that exceeds it is a `RuntimeError` in the guest. While results of this size wait to be
    read by the guest, later calls wait."""
    source_bytes: int | None = None
    """Bytes of the code of a run, 16 MiB by default. Longer code is a `LimitError`."""
    display_bytes: int | None = None
    """Bytes of a run's displays together, 32 MiB by default. Past it: as with `displays`."""
    displays: int | None = None
    """Displays of a run that are kept, 100 by default.

    Further ones are left out, and counted by `Execution.truncated`. The run goes on."""
    files: int | None = None
    """Files written by a run that are listed, 1,000 by default. Past it: as with `displays`."""
    output_lines: int | None = None
    """Lines of each stream that are kept, 1,000,000 by default.

    Past it: as with `stdout_bytes`."""
    tool_calls: int | None = None
    """Tool calls in a run, 10,000 by default.

    One more stops the run as `run_time` does, with the status `limit`."""
    concurrent_tools: int | None = None
    """Tool calls at once, 16 by default. Later ones wait."""
    refusals: int | None = None
    """Refused requests of the guest in a run, 10,000 by default. Past it: as with `tool_calls`."""

    def to_wire(self) -> dict[str, Any]:
        """Returns the limits that are set."""
        names = type(self).__dataclass_fields__
        found = {name: getattr(self, name) for name in names}
        return {name: value for name, value in found.items() if value is not None}


@dataclass(frozen=True, slots=True)
class Mount:
    """A directory of the host that guests see: `Mount("./out", mode="rw")`.

    A quota that is exceeded is an `OSError` (`EDQUOT`) in the guest.
    """

    path: StrPath
    """The directory. A relative one is relative to the program's. It has to exist."""
    _: KW_ONLY
    mode: Literal["ro", "overlay", "rw"] = "ro"
    """`ro`, read-only; `overlay`, where what a guest writes stays in its memory; `rw`."""
    quota_bytes: int | None = None
    """Bytes that a session may write: 1 GiB for `rw`, 256 MiB for `overlay` by default."""
    quota_files: int | None = None
    """Files that a session may create, 10,000 by default."""


class Policy(TypedDict, total=False):
    """The keywords of `Sandbox` and `run`. Everything is denied unless one allows it.

    What is denied is an exception in the guest, such as `PermissionError`, that names the rule. A
    keyword that does not exist is a `TypeError`, and a value that is invalid a `ConfigError`.
    """

    tools: Iterable[Callable[..., Any] | Tool] | Mapping[str, Callable[..., Any] | Tool]
    """Functions of the host that guests can call, as a list or by name. See `tool`."""
    submit: Mapping[str, Any] | Submit | None
    """The fields of `SUBMIT(...)`, by which a guest ends a run with a result: name to type.

    `Execution.status` is then `submitted`, and its `value` a dict of the fields. See `Submit`."""
    mounts: Mapping[str, StrPath | Mount]
    """Directories by their path in the guest: `{"/data": "./data"}`. A plain path is read-only."""
    allow_net: Iterable[str]
    """Rules such as `example.com` or `https://example.com:8443`: `docs/concepts/permissions.md`."""
    deny_net: Iterable[str]
    """Rules that go before those of `allow_net`."""
    allow_public_net: bool
    """Whether requests to every public address are allowed."""
    headers: Mapping[str, Mapping[str, str]]
    """Headers by origin that the host adds to requests. Guests do not see them:
    `{"https://api.example.com": {"Authorization": "Bearer ..."}}`."""
    ca_files: Iterable[StrPath]
    """Files with further certificate authorities to trust."""
    env: Mapping[str, str]
    """Environment variables of guests."""
    allow_env: Iterable[str]
    """Names of variables that guests see with the host's values."""
    packages: Iterable[str]
    """Requirements, such as `pandas`, that every session has from its start.

    The host fetches them once, with the pip of the `python3` on `PATH`, and keeps them. One that
    cannot be had is a `PackagesError` of the first use of a session. `docs/concepts/packages.md`
    lists what works."""
    allow_packages: Iterable[str]
    """Requirements that are loaded when the guest imports them."""
    preload: Iterable[str]
    """Packages or modules that are imported once, for all sessions."""
    wheels: Iterable[StrPath]
    """Directories with wheels, which go before the index."""
    bundle: bool
    """Whether guests may import the packages of `isolet-science`, if it is installed. They may by
    default."""
    offline: bool
    """Whether packages come from the cache and from `wheels` only."""
    limits: Limits
    """Limits of each session."""
    isolation: Literal["process", "thread"]
    """Where guests run: in a locked-down process each, the default, or on threads of the server."""
    require: Iterable[str]
    """Layers of isolation, such as `seccomp`, without which nothing runs."""
    forkable: int
    """How many sessions at once may descend from one by `Session.fork`. Without it, none can be
    forked."""
    checkpoint: bool
    """Whether a session goes on after a run that has ended its interpreter, with `os._exit` for
    example: from its state in an idle moment before. It does by default, and `Execution.restored`
    says so. Files of mounts keep what the run wrote to them."""
    seed: int
    """Makes sessions deterministic: what guests take from chance, clocks and the order of threads
    and tasks is derived from it. From 0 to 2**64 - 1."""
    start_time: datetime.datetime | float
    """When a deterministic session starts, as a time or in seconds since 1970. By default
    2026-01-01 in UTC."""
    on_audit: Callable[[AuditEvent], object]
    """Called with an `AuditEvent` for each access that was allowed or denied, in a thread that
    waits for a session."""


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
    """Returns a submission as `docs/reference/protocol.md` describes it."""
    return (fields if isinstance(fields, Submit) else Submit(fields)).to_wire()


def _as_is(_: str, value: Any) -> Any:
    return value


def _texts(name: str, value: Any) -> list[str]:
    if isinstance(value, (str, bytes)):
        raise ConfigError(f"`{name}` is {value!r}, and has to be a list", f"`{name}=[{value!r}]`")
    return list(value)


def _paths(name: str, value: Any) -> list[str]:
    return [os.path.abspath(path) for path in _texts(name, value)]


def _seconds(name: str, value: Any) -> float:
    if isinstance(value, datetime.datetime):
        return value.timestamp()
    if not isinstance(value, (int, float)):
        raise ConfigError(
            f"`{name}` is {value!r}, and has to be a time", "`datetime.datetime(...)`"
        )
    return float(value)


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
    "start_time": _seconds,
}
