"""`isolet.deepagents.Backend` gives Deep Agents the files and the shell of a session."""

from __future__ import annotations

import asyncio

import pytest

pytest.importorskip("deepagents", reason="deepagents is not installed")

from deepagents import create_deep_agent
from deepagents.backends import CompositeBackend, StateBackend
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage

import isolet
from isolet.deepagents import Backend

ASK = {"messages": [{"role": "user", "content": "?"}]}
STUBBORN = """python3 -c '
while True:
  try:
    while True: pass
  except BaseException: pass'"""
"""A command that cannot be interrupted: it ends its interpreter."""


class Scripted(GenericFakeChatModel):
    """A model that makes prepared calls, several at once if they are in one list."""

    def bind_tools(self, tools, **_):
        return self


def agent(backend, *turns):
    messages = []
    for turn, calls in enumerate(turns):
        made = [
            {"name": name, "args": arguments, "id": f"{turn}-{index}"}
            for index, (name, arguments) in enumerate(calls)
        ]
        messages.append(AIMessage(content="", tool_calls=made))
    messages.append(AIMessage(content="done"))
    return create_deep_agent(model=Scripted(messages=iter(messages)), backend=backend)


def answers(result):
    return [message.content for message in result["messages"] if message.type == "tool"]


@pytest.fixture
def session(sandbox):
    with sandbox.session() as session:
        yield session


@pytest.fixture
def backend(session):
    return Backend(session)


CALLS = [
    [("write_file", {"file_path": "/work/a.py", "content": "import os\nTODO = 1\n"})],
    [("edit_file", {"file_path": "/work/a.py", "old_string": "1", "new_string": "2"})],
    [("read_file", {"file_path": "/work/a.py"})],
    [("execute", {"command": "cd /work && python3 a.py && cat a.py | wc -l; exit 3"})],
    [("ls", {"path": "/work"}), ("glob", {"pattern": "**/*.py", "path": "/work"})],
    [("grep", {"pattern": "TODO", "path": "/work", "output_mode": "content"})],
]


def check(found):
    wrote, edited, read, ran, listed, matched, searched = found
    assert "/work/a.py" in wrote
    assert "/work/a.py" in edited
    assert "TODO = 2" in read
    assert ran.startswith("2\n")
    assert "exit code 3" in ran
    assert "/work/a.py" in listed
    assert "/work/a.py" in matched
    assert "TODO = 2" in searched


def test_an_agent_uses_files_and_commands(backend):
    check(answers(agent(backend, *CALLS).invoke(ASK)))


def test_an_asynchronous_agent_does_the_same(backend):
    check(answers(asyncio.run(agent(backend, *CALLS).ainvoke(ASK))))


def test_calls_at_once_wait_for_each_other(backend):
    calls = [("execute", {"command": f"sleep 0.1; echo {number}"}) for number in range(5)]
    for found in (
        agent(backend, calls).invoke(ASK),
        asyncio.run(agent(backend, calls).ainvoke(ASK)),
    ):
        assert [answer[0] for answer in answers(found)] == list("01234")


def test_long_output_stays_in_a_file_of_the_session(backend, session):
    deep_agent = agent(backend, [("execute", {"command": "seq 1 100000"})])
    [found] = answers(deep_agent.invoke(ASK))
    assert len(found) < 10_000
    path = next(line for line in found.split() if line.startswith("/large_tool_results/"))
    assert session.files.get(path.rstrip(".,")).endswith(b"\n100000\n")


def test_it_is_the_default_of_a_composite(backend):
    composite = CompositeBackend(default=backend, routes={"/memories/": StateBackend()})
    assert composite.execute("echo a").output == "a\n"


def test_a_command_has_both_streams_a_status_and_a_shell_of_its_own(backend):
    ran = backend.execute("echo a; echo b >&2; export X=1; cd /tmp; exit 7")
    assert (ran.output, ran.exit_code, ran.truncated) == ("a\nb\n", 7, False)
    assert backend.execute('echo "$X"; pwd').output == "\n/home/user\n"
    assert backend.execute("nosuch").exit_code == 127


def test_a_command_that_takes_too_long_has_status_124(session):
    backend = Backend(session, timeout=1)
    ran = backend.execute("printf a; sleep 20")
    assert ran.exit_code == 124
    assert ran.output.startswith("a\nthe run was terminated")
    assert backend.execute("sleep 1.5", timeout=5).exit_code == 0
    assert backend.execute("sleep 20", timeout=0).exit_code == 124


def test_too_much_output_loses_its_middle():
    with Backend(limits=isolet.Limits(stdout_bytes=1000)) as backend:
        ran = backend.execute("seq 1 10000")
    assert ran.truncated
    assert ran.output.startswith("1\n2\n")
    assert len(ran.output) < 1100


def test_a_session_that_has_ended_is_started_again():
    with Backend(checkpoint=False) as backend:
        assert backend.execute("echo a > kept").exit_code == 0
        ran = backend.execute(STUBBORN, timeout=1)
        assert (ran.exit_code, ran.output.endswith("its files are lost.\n")) == (124, True)
        assert backend.execute("ls").output == ""


def test_files_cross_as_bytes(backend):
    data = bytes(range(256))
    files = [("/work/sub/a.bin", data), ("relative", b""), ("/work/sub", b""), ("/a\0b", b"")]
    errors = [None, "invalid_path", "is_directory", "invalid_path"]
    for found in (backend.upload_files(files), asyncio.run(backend.aupload_files(files))):
        assert [each.path for each in found] == [path for path, _ in files]
        assert [each.error for each in found] == errors
    paths = ["/work/sub/a.bin", "/nosuch", "/work/sub", "relative", "/work/sub/a.bin/b"]
    errors = [None, "file_not_found", "is_directory", "invalid_path", "invalid_path"]
    for found in (backend.download_files(paths), asyncio.run(backend.adownload_files(paths))):
        assert [each.content for each in found] == [data, *[None] * 4]
        assert [each.error for each in found] == errors


def test_files_without_permission_say_so(backend):
    backend.execute("echo a > /tmp/closed; chmod 000 /tmp/closed")
    assert backend.download_files(["/tmp/closed"])[0].error == "permission_denied"
    assert backend.upload_files([("/tmp/closed", b"")])[0].error == "permission_denied"


def test_a_file_larger_than_what_may_cross_is_an_error():
    with Backend(limits=isolet.Limits(value_bytes=1000)) as backend:
        backend.execute("head -c 2000 /dev/zero > large")
        [found] = backend.download_files(["/home/user/large"])
    assert found.content is None
    assert "1000" in found.error


def test_the_operations_of_the_protocol(backend):
    text = "".join(f"line {number}\n" for number in range(1, 11))
    assert backend.write("/work/a.txt", text).path == "/work/a.txt"
    backend.write("/work/.hidden/b.yml", "a: b\nline 1\n")
    assert backend.ls("/nosuch").error == "Path '/nosuch': path_not_found"
    assert sorted(each["path"] for each in backend.ls("/work").entries) == [
        "/work/.hidden",
        "/work/a.txt",
    ]
    page = backend.read("/work/a.txt", 2, 3)
    assert page.file_data["content"] == "line 3\nline 4\nline 5"
    assert (page.start_line, page.end_line, page.next_offset) == (3, 5, 5)
    assert "file_not_found" in backend.read("/nosuch").error
    assert "not found" in backend.edit("/nosuch", "a", "b").error
    assert "String not found" in backend.edit("/work/a.txt", "zzz", "b").error
    assert "multiple times" in backend.edit("/work/a.txt", "line", "row").error
    assert backend.edit("/work/a.txt", "line", "row", replace_all=True).occurrences == 10
    assert [each["path"] for each in backend.glob("*.yml", "/work").matches] == [
        "/work/.hidden/b.yml"
    ]
    assert "invalid_pattern" in backend.glob("../*", "/work").error
    assert backend.grep("a: b", "/work").matches == [
        {"path": "/work/.hidden/b.yml", "line": 1, "text": "a: b"}
    ]
    limited = backend.grep("row", "/work", max_count=4)
    assert (len(limited.matches), limited.truncated) == (4, True)
    assert backend.grep("row.1", "/work").matches == []
    assert backend.grep("row 1", "/work", glob="*.yml").matches == []
    assert backend.delete("/work").path == "/work"
    assert backend.delete("/work").error


def test_names_with_quotes_and_spaces(backend):
    name = '/work/it\'s "a" $x.txt'
    assert backend.write(name, "a\n").path == name
    assert backend.read(name).file_data["content"] == "a"
    assert [each["path"] for each in backend.ls("/work").entries] == [name]
    assert backend.grep("a", "/work").matches == [{"path": name, "line": 1, "text": "a"}]
    assert backend.delete(name).path == name


def test_large_edits_go_through_files(backend):
    backend.write("/work/large.txt", "a" * 200_000 + "b")
    assert backend.edit("/work/large.txt", "a" * 200_000, "c").occurrences == 1
    assert backend.download_files(["/work/large.txt"])[0].content == b"cb"


def test_a_session_is_opened_once_and_ended_by_close(sandbox):
    backend = Backend(sandbox=sandbox)
    assert backend.id.startswith("isolet-")
    backend.close()
    assert backend.execute("echo a > kept; ls").output == "kept\n"
    backend.close()
    assert backend.execute("ls").output == ""
    backend.close()


def test_a_session_that_was_given_stays(session):
    with Backend(session) as backend:
        backend.execute("echo a > kept")
    assert session.files.get("kept") == b"a\n"


def test_a_policy_is_given_once(sandbox, session):
    with pytest.raises(TypeError, match="so packages cannot be given"):
        Backend(sandbox=sandbox, packages=["rich"])
    with pytest.raises(TypeError, match="neither"):
        Backend(session, sandbox=sandbox)
