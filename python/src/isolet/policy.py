"""What a sandbox allows: `Policy`, `Limits`, `Mount`."""

from __future__ import annotations

import datetime
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, Literal, TypedDict, cast

from ._shapes import (
    Shape,
    by_key,
    callback,
    check_fields,
    flag,
    hidden_text,
    list_of,
    moment,
    one_of,
    path,
    seconds,
    texts,
    whole,
    wrong,
    wrong_kind,
)
from ._values import to_plain
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

    `None` stands for the default. A value of another type is a `ConfigError`. So is one that makes
    no sense, such as less than 64 MiB of memory, at the first use of a session.
    `docs/reference/limits.md` has the details.

    Args:
        run_time: seconds that a run may take, 30 by default, without the time in which tools run.
            Past it the guest gets `KeyboardInterrupt`, and `Execution.status` is `timeout`. The
            session goes on if the guest ends within `grace`.
        host_time: seconds in which tools of a run may run, 3,600 by default. Past it: as with
            `run_time`.
        grace: seconds from an interrupt until the session is killed, 0.5 by default. Then the
            session goes on from its last checkpoint, see `Policy.checkpoint`.
        memory_bytes: bytes of the interpreter's memory and files, 1 GiB by default and at least 64
            MiB. Past it the guest gets `MemoryError`, or `OSError` for a file, and the session goes
            on. If JavaScript fills its part, `Execution.status` is `memory` and the interpreter has
            ended, see `Policy.checkpoint`.
        stdout_bytes: bytes of the standard output that are kept, 1 MiB by default. Of more, the
            start and the end are kept, and `Execution.truncated` counts the rest. The run goes on.
            `Session.stream` and `on_stdout` get all of it.
        stderr_bytes: bytes of the standard error that are kept, 1 MiB by default. Past it: as with
            `stdout_bytes`.
        value_bytes: bytes of a value or file that crosses, 256 MiB by default. A larger result
            leaves `Execution.value_error`, a larger argument or result of a tool is a `ValueError`
            in the guest, and anything else is a `TransferError`.
        call_bytes: bytes of the arguments of unfinished tool calls, 256 MiB by default. A call that
            exceeds it is a `RuntimeError` in the guest. While results of this size wait to be read
            by the guest, later calls wait.
        source_bytes: bytes of the code of a run, 16 MiB by default. Longer code is a `LimitError`.
        display_bytes: bytes of a run's displays together, 32 MiB by default. Past it: as with
            `displays`.
        displays: displays of a run that are kept, 100 by default. Further ones are left out, and
            counted by `Execution.truncated`. The run goes on.
        files: files written by a run that are listed, 1,000 by default. Past it: as with
            `displays`.
        output_lines: lines of each stream that are kept, 1,000,000 by default. Past it: as with
            `stdout_bytes`.
        tool_calls: tool calls in a run, 10,000 by default. One more stops the run as `run_time`
            does, with the status `limit`.
        concurrent_tools: tool calls at once, 16 by default. Later ones wait.
        refusals: refused requests of the guest in a run, 10,000 by default. Past it: as with
            `tool_calls`.
    """

    run_time: float | None = None
    host_time: float | None = None
    grace: float | None = None
    memory_bytes: int | None = None
    stdout_bytes: int | None = None
    stderr_bytes: int | None = None
    value_bytes: int | None = None
    call_bytes: int | None = None
    source_bytes: int | None = None
    display_bytes: int | None = None
    displays: int | None = None
    files: int | None = None
    output_lines: int | None = None
    tool_calls: int | None = None
    concurrent_tools: int | None = None
    refusals: int | None = None

    def __post_init__(self) -> None:
        check_fields(self, LIMITS)

    def to_wire(self) -> dict[str, Any]:
        """Returns the limits that are set."""
        names = type(self).__dataclass_fields__
        found = {name: getattr(self, name) for name in names}
        return {name: value for name, value in found.items() if value is not None}


@dataclass(frozen=True, slots=True)
class Mount:
    """A directory of the host that guests see: `Mount("./out", mode="rw")`.

    A quota that is exceeded is an `OSError` (`EDQUOT`) in the guest.

    Args:
        path: the directory. A relative one is relative to the program's. It has to exist.
        mode: `ro`, read-only; `overlay`, where what a guest writes stays in its memory; `rw`.
        quota_bytes: bytes that a session may write: 1 GiB for `rw`, 256 MiB for `overlay` by
            default.
        quota_files: files that a session may create, 10,000 by default.
    """

    path: StrPath
    _: KW_ONLY
    mode: Literal["ro", "overlay", "rw"] = "ro"
    quota_bytes: int | None = None
    quota_files: int | None = None

    def __post_init__(self) -> None:
        check_fields(self, MOUNTS)


@dataclass(frozen=True, slots=True)
class Secret:
    """A secret, such as the key of an API, that guests use without seeing it:
    `Secret(os.environ["KEY"], hosts=["api.example.com"])`.

    Args:
        value: the secret, of 8 to 4,096 bytes.
        hosts: the hosts that get it: `api.example.com`, `*.example.com:8443`,
            `http://localhost:8000`.
        in_bodies: whether bodies of requests get it, too.
    """

    value: str = field(repr=False)
    _: KW_ONLY
    hosts: Iterable[str]
    in_bodies: bool = False

    def __post_init__(self) -> None:
        check_fields(self, SECRETS)


class Policy(TypedDict, total=False):
    """The keywords of `Sandbox` and `run`. Everything is denied unless one allows it.

    What is denied is an exception in the guest, such as `PermissionError`, that names the rule. A
    keyword that does not exist is a `TypeError`, and a value that is invalid a `ConfigError`.

    Args:
        tools: functions of the host that guests can call, as a list or by name. See `tool`.
        submit: the fields of `SUBMIT(...)`, by which a guest ends a run with a result: name to
            type. `Execution.status` is then `submitted`, and its `value` a dict of the fields. See
            `Submit`.
        mounts: directories by their path in the guest: `{"/data": "./data"}`. A plain path is
            read-only.
        allow_net: rules without a scheme, such as `example.com`, `*.example.com`,
            `example.com:8443` or `192.0.2.7`. `docs/concepts/permissions.md` has them all.
        deny_net: rules that go before those of `allow_net`.
        allow_public_net: whether requests to every public address are allowed.
        headers: headers by origin that the host adds to requests. Guests do not see them:
            `{"https://api.example.com": {"Authorization": "Bearer ..."}}`.
        secrets: secrets by the environment variable in which guests find a placeholder. Requests to
            the secret's hosts have the secret in its place: `docs/guides/secrets.md`.
        ca_files: files with further certificate authorities to trust.
        env: environment variables of guests.
        allow_env: names of variables that guests see with the host's values.
        packages: requirements, such as `pandas`, that every session has from its start. The host
            fetches them once, with the pip of the `python3` on `PATH`, and keeps them. One that
            cannot be had is a `PackagesError` of the first use of a session.
            `docs/concepts/packages.md` lists what works.
        allow_packages: requirements that are loaded when the guest imports them.
        preload: packages or modules that are imported once, for all sessions.
        wheels: directories with wheels, which go before the index.
        bundle: whether guests may import the packages of `isolet-science`, if it is installed. They
            may by default.
        offline: whether packages come from the cache and from `wheels` only.
        limits: limits of each session.
        isolation: where guests run: in a locked-down process each, the default, or on threads of
            the server.
        require: layers of isolation, such as `seccomp`, without which nothing runs.
        forkable: how many sessions at once may descend from one by `Session.fork`. Without it, none
            can be forked.
        checkpoint: whether a session goes on after a run that has ended its interpreter, with
            `os._exit` for example: from its state in an idle moment before. It does by default, and
            `Execution.restored` says so. Files of mounts keep what the run wrote to them.
        seed: makes sessions deterministic: what guests take from chance, clocks and the order of
            threads and tasks is derived from it. From 0 to 2**64 - 1.
        start_time: when a deterministic session starts, as a time or in seconds since 1970. By
            default 2026-01-01 in UTC.
        on_audit: called with an `AuditEvent` for each access that was allowed or denied, in a
            thread that waits for a session.
    """

    tools: Iterable[Callable[..., Any] | Tool] | Mapping[str, Callable[..., Any] | Tool]
    submit: Mapping[str, Any] | Submit | None
    mounts: Mapping[str, StrPath | Mount]
    allow_net: Iterable[str]
    deny_net: Iterable[str]
    allow_public_net: bool
    headers: Mapping[str, Mapping[str, str]]
    secrets: Mapping[str, Secret]
    ca_files: Iterable[StrPath]
    env: Mapping[str, str]
    allow_env: Iterable[str]
    packages: Iterable[str]
    allow_packages: Iterable[str]
    preload: Iterable[str]
    wheels: Iterable[StrPath]
    bundle: bool
    offline: bool
    limits: Limits
    isolation: Literal["process", "thread"]
    require: Iterable[str]
    forkable: int
    checkpoint: bool
    seed: int
    start_time: datetime.datetime | float
    on_audit: Callable[[AuditEvent], object]


class Compiled:
    """A policy that was read: what the server gets, and what stays here."""

    __slots__ = ("on_audit", "tools", "wire")

    def __init__(self, policy: Policy) -> None:
        values = cast("dict[str, Any]", {**policy})
        for name in values:
            if name not in SHAPES:
                raise TypeError(f"a policy has no key {name!r}; it has {', '.join(SHAPES)}")
        read = {
            name: SHAPES[name](name, value) for name, value in values.items() if value is not None
        }
        self.tools: dict[str, Tool] = read.pop("tools", {})
        self.on_audit: Callable[[AuditEvent], object] | None = read.pop("on_audit", None)
        wire: dict[str, Any] = {}
        if self.tools:
            wire["tools"] = [tool.to_wire() for tool in self.tools.values()]
        if self.on_audit is not None:
            wire["audit"] = True
        self.wire: dict[str, Any] = to_plain({**wire, **read}, "policy")


def submit_to_wire(fields: Mapping[str, Any] | Submit) -> dict[str, Any]:
    """Returns a submission as `docs/reference/protocol.md` describes it."""
    return _submit("submit", fields)


def _submit(name: str, value: Any) -> dict[str, Any]:
    if isinstance(value, Mapping):
        value = Submit(cast("Mapping[str, Any]", value))
    if not isinstance(value, Submit):
        wanted = "a dict of types by name, or `Submit(...)`"
        raise wrong(name, value, wanted, f"`{name}={{'answer': str}}`")
    return value.to_wire()


def _tools(name: str, value: Any) -> dict[str, Tool]:
    if isinstance(value, (str, bytes)) or not (callable(value) or isinstance(value, Iterable)):
        raise wrong(name, value, "a list of functions, or a dict of functions by name")
    return collect(cast("Iterable[Any]", value))


def _nets(name: str, value: Any) -> list[str]:
    if value is True:
        public = "`allow_public_net=True` allows every public address"
        raise wrong(name, value, "a list of strings", f"`{name}=['example.com']`; {public}")
    return texts("'example.com'")(name, value)


def _limits(name: str, value: Any) -> dict[str, Any]:
    if not isinstance(value, Limits):
        raise wrong(name, value, "`Limits(...)`", f"`{name}=isolet.Limits(run_time=5)`")
    return value.to_wire()


def _mount(name: str, value: Any) -> dict[str, Any]:
    if not isinstance(value, Mount):
        if not isinstance(value, (str, os.PathLike)):
            raise wrong(name, value, "a path or `Mount(...)`")
        value = Mount(cast("StrPath", value))
    wire: dict[str, Any] = {"host": path(name, value.path), "mode": value.mode}
    if value.quota_bytes is not None:
        wire["quota_bytes"] = value.quota_bytes
    if value.quota_files is not None:
        wire["quota_files"] = value.quota_files
    return wire


def _mounts(name: str, value: Any) -> list[dict[str, Any]]:
    if isinstance(value, (str, os.PathLike)):
        shown = os.fspath(cast("StrPath", value))
        wanted = "a dict of directories by their path in the guest"
        raise wrong(name, value, wanted, f"`{name}={{'/data': {shown!r}}}`")
    mounts = by_key(_mount, "directories by their path in the guest", "{'/data': './data'}")
    return [{"guest": guest, **mount} for guest, mount in mounts(name, value).items()]


def _secret(name: str, value: Any) -> dict[str, Any]:
    if not isinstance(value, Secret):
        raise wrong_kind(name, value, "`Secret(...)`")
    hosts = _hosts(f"{name}.hosts", value.hosts)
    return {"value": value.value, "hosts": hosts, "in_bodies": value.in_bodies}


_HEADERS = "headers by origin"
_HEADER = "{'https://api.example.com': {'Authorization': 'Bearer ...'}}"
_PACKAGES = texts("'numpy'")
_hosts = texts("'api.example.com'")

SHAPES: dict[str, Shape] = {
    "tools": _tools,
    "submit": _submit,
    "mounts": _mounts,
    "allow_net": _nets,
    "deny_net": texts("'example.com'"),
    "allow_public_net": flag,
    "headers": by_key(
        by_key(hidden_text, "strings by name", "{'Authorization': 'Bearer ...'}", secretly=True),
        _HEADERS,
        _HEADER,
        secretly=True,
    ),
    "secrets": by_key(_secret, "secrets by name", "{'KEY': isolet.Secret(...)}", secretly=True),
    "ca_files": list_of(path, "paths", "'./ca.pem'"),
    "env": by_key(hidden_text, "strings by name", "{'MODE': 'test'}", secretly=True),
    "allow_env": texts("'HOME'"),
    "packages": _PACKAGES,
    "allow_packages": _PACKAGES,
    "preload": _PACKAGES,
    "wheels": list_of(path, "paths", "'./wheels'"),
    "bundle": flag,
    "offline": flag,
    "limits": _limits,
    "isolation": one_of("process", "thread"),
    "require": texts("'seccomp'"),
    "forkable": whole(wanted="how many copies there may be"),
    "checkpoint": flag,
    "seed": whole(),
    "start_time": moment,
    "on_audit": callback,
}
"""What each keyword of `Policy` has to be."""

LIMITS: dict[str, Shape] = {
    **dict.fromkeys(("run_time", "host_time", "grace"), seconds),
    **dict.fromkeys(
        (
            "memory_bytes",
            "stdout_bytes",
            "stderr_bytes",
            "value_bytes",
            "call_bytes",
            "source_bytes",
            "display_bytes",
            "displays",
            "files",
            "output_lines",
            "tool_calls",
            "concurrent_tools",
            "refusals",
        ),
        whole(),
    ),
}
"""The same of `Limits`."""

MOUNTS: dict[str, Shape] = {
    "path": path,
    "mode": one_of("ro", "overlay", "rw"),
    "quota_bytes": whole(),
    "quota_files": whole(),
}
"""The same of `Mount`."""

SECRETS: dict[str, Shape] = {"value": hidden_text, "in_bodies": flag}
"""The same of `Secret`."""
