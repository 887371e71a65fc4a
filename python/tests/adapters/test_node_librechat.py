"""A node runs the code of LibreChat's agents, with LibreChat's own tools and the requests of its
server."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import shutil
import subprocess
import tarfile
from pathlib import Path
from typing import Any

import pytest
import requests
from node_process import serving

CLIENT, VERSION = "@librechat/agents", "3.2.21"
NEEDED = (
    "@langchain/core@1.1.44",
    "dotenv@16.4.7",
    "https-proxy-agent@7.0.6",
    "node-fetch@2.7.0",
)
"""What the tools for code import. The whole client would be 556 MB."""

ROOT = Path(__file__).parents[3]
SECONDS = 150

CANARY = "canary-7f3a9c"


@pytest.fixture(scope="module")
def client() -> Path:
    """The directory of the client's modules, which npm fetches once."""
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    directory = target / "client" / "librechat"
    package = directory / "node_modules" / CLIENT
    about = package / "package.json"
    if not about.exists() or json.loads(about.read_text())["version"] != VERSION:
        directory.mkdir(parents=True, exist_ok=True)
        npm = ["npm", "--silent", "--no-audit", "--no-fund", "--ignore-scripts"]
        install = [*npm, "install", "--prefix", str(directory), *NEEDED]
        subprocess.run(install, check=True, timeout=SECONDS)
        pack = [*npm, "pack", f"{CLIENT}@{VERSION}", "--pack-destination", str(directory)]
        packed = subprocess.run(pack, check=True, timeout=SECONDS, capture_output=True, text=True)
        package.mkdir(parents=True, exist_ok=True)
        with tarfile.open(directory / packed.stdout.strip()) as archive:
            for member in archive.getmembers():
                member.name = member.name.removeprefix("package/")
            archive.extractall(package, filter="data")
    return package / "dist" / "esm"


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory):
    """A node with two tenants."""
    config = tmp_path_factory.mktemp("librechat") / "node.toml"
    keys = {name: hashlib.sha256(name.encode()).hexdigest() for name in ("one", "two")}
    tenants = [f'[tenants.{name}]\nkeys = ["sha256:{keys[name]}"]\n' for name in keys]
    config.write_text("[policy]\nlimits = { run_time = 5 }\n" + "".join(tenants))
    with serving("--config", str(config)) as address:
        yield f"{address}/librechat"


@pytest.mark.skipif(
    not shutil.which("node") or not shutil.which("npm"), reason="there is no node or no npm"
)
def test_the_tools_for_code_of_librechats_agents_work_unmodified(client: Path, address: str):
    # Where node finds what the client imports.
    script = client.parents[4] / "client.mjs"
    script.write_bytes((Path(__file__).parent / "librechat_client.mjs").read_bytes())
    with_key = address.replace("http://", "http://any:one@")
    for base, key in [(address, "one"), (with_key, "")]:
        own = {"CLIENT": str(client), "LIBRECHAT_CODE_BASEURL": base, "KEY": key}
        ran = subprocess.run(
            ["node", str(script)],
            env={**os.environ, **own},
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        assert ran.returncode == 0, ran.stderr
        assert ran.stdout == "all is as it should be\n"


def asked(
    address: str, method: str, path: str, key: str = "one", **options: Any
) -> requests.Response:
    headers = {"X-API-Key": key, "User-Agent": "LibreChat/1.0"}
    return requests.request(method, f"{address}{path}", headers=headers, timeout=SECONDS, **options)


def executed(address: str, code: str, key: str = "one", **fields: Any) -> dict[str, Any]:
    body = {"lang": "py", "code": code, **fields}
    answer = asked(address, "POST", "/exec", key, json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()


def uploaded(address: str, name: str, contents: bytes, key: str = "one", **fields: str):
    """Sends what LibreChat's `uploadCodeEnvFile` sends, and reads the answer as that does."""
    form = {"kind": "user", "id": "u", **fields}
    files = {"file": (name, contents, "text/csv")}
    answer = asked(address, "POST", "/upload", key, data=form, files=files)
    assert answer.status_code == 200, answer.text
    result = answer.json()
    assert result["message"] == "success"
    return result["storage_session_id"], result["files"][0]["fileId"]


def test_an_upload_is_in_the_directory_of_the_code_that_names_it(address: str) -> None:
    session, file = uploaded(address, "sub/é.csv", b"a,b\n")
    ref = {"id": file, "storage_session_id": session, "kind": "user", "resource_id": "u"}
    listing = "import os\nfor top, _, names in os.walk('.'): print(top, names)"
    answer = executed(address, listing, files=[{**ref, "name": "sub/é.csv"}])
    assert answer["stdout"] == ". []\n./sub ['é.csv']\n"
    # Older clients name the session otherwise, or send the session alone.
    older = executed(address, listing, files=[{"id": file, "session_id": session, "name": "b"}])
    assert older["stdout"] == ". ['b']\n"
    assert executed(address, listing, session_id=session)["stdout"] == answer["stdout"]
    outside = [{**ref, "name": "../../etc/x"}]
    assert "./etc ['x']" in executed(address, listing, files=outside)["stdout"]
    info = asked(address, "GET", f"/sessions/{session}/objects/{file}", params={"kind": "user"})
    assert info.json()["lastModified"].startswith("20")
    assert info.json()["size"] == 4
    download = asked(address, "GET", f"/download/{session}/{file}?kind=user&id=u")
    assert download.content == b"a,b\n"
    assert download.headers["Content-Disposition"] == "attachment; filename*=UTF-8''%C3%A9.csv"
    names = asked(address, "GET", f"/files/{session}?detail=summary").json()
    assert [each["name"] for each in names] == [f"{session}/{file}.csv"]
    full = asked(address, "GET", f"/files/{session}?detail=full").json()
    assert full[0]["metadata"]["original-filename"] == "sub/é.csv"
    assert asked(address, "GET", f"/files/{session}").json() == [f"{session}/{file}.csv"]
    assert asked(address, "DELETE", f"/files/{session}/{file}").status_code == 200
    for method, path in [
        ("GET", f"/download/{session}/{file}"),
        ("GET", f"/sessions/{session}/objects/{file}"),
        ("DELETE", f"/files/{session}/{file}"),
        ("GET", "/files/none"),
    ]:
        gone = asked(address, method, path)
        assert gone.status_code == 404, path
        assert "the node has no" in gone.json()["error"], path


def test_a_batch_of_uploads_says_of_each_file_what_became_of_it(address: str) -> None:
    parts = [
        ("read_only", (None, "true")),
        ("file", ("skill/SKILL.md", b"text", "text/markdown")),
        ("file", ("..", b"x", "text/plain")),
    ]
    answer = asked(address, "POST", "/upload/batch", files=parts).json()
    assert (answer["message"], answer["succeeded"], answer["failed"]) == ("partial_success", 1, 1)
    assert [each["status"] for each in answer["files"]] == ["success", "error"]
    # What a skill brings stays as it is.
    session = answer["storage_session_id"]
    code = "open('skill/SKILL.md', 'w').write('changed'); open('own.txt', 'w').write('x')"
    changed = executed(address, code, session_id=session)
    assert [each["name"] for each in changed["files"]] == ["own.txt"]
    assert executed(address, "print(open('skill/SKILL.md').read())", session_id=session)[
        "stdout"
    ] == ("text\n")
    for empty in ({"data": {"kind": "user"}, "files": {"x": (None, "y")}}, {"json": {}}):
        refused = asked(address, "POST", "/upload", **empty)
        assert refused.status_code == 400
        assert "form" in refused.json()["error"]


def test_files_and_runs_of_a_key_are_no_other_keys(address: str) -> None:
    session, file = uploaded(address, "secret.txt", CANARY.encode())
    ref = {"id": file, "storage_session_id": session, "name": "secret.txt"}
    code = "import os; print(os.listdir('.'))"
    for path in (f"/download/{session}/{file}", f"/files/{session}?detail=full"):
        other = asked(address, "GET", path, key="two")
        assert other.status_code == 404
        assert CANARY not in other.text
    named = executed(address, code, key="two", files=[ref])
    assert named["stdout"] == "[]\n"
    assert named["stderr"] == "the node has no file `secret.txt`, or no longer\n"
    assert executed(address, code, key="two", session_id=session)["stdout"] == "[]\n"
    assert asked(address, "DELETE", f"/files/{session}/{file}", key="two").status_code == 404
    assert asked(address, "GET", f"/download/{session}/{file}").text == CANARY
    tools = [{"name": "ask", "parameters": {"type": "object", "properties": {}}}]
    body = {"code": "print(await ask())", "tools": tools}
    waiting = asked(address, "POST", "/exec/programmatic", json=body).json()
    assert waiting["status"] == "tool_call_required"
    token, call = waiting["continuation_token"], waiting["tool_calls"][0]["id"]
    go_on = {
        "continuation_token": token,
        "tool_results": [{"call_id": call, "result": CANARY, "is_error": False}],
    }
    other = asked(address, "POST", "/exec/programmatic", key="two", json=go_on)
    assert other.status_code == 404
    assert "begin it again" in other.json()["error"]
    for results in ([], [{"call_id": "call_999", "result": 1}], [{"call_id": "x", "result": 1}]):
        wrong = {"continuation_token": token, "tool_results": results}
        assert asked(address, "POST", "/exec/programmatic", json=wrong).status_code == 400
    done = asked(address, "POST", "/exec/programmatic", json=go_on).json()
    assert (done["status"], done["stdout"]) == ("completed", f"{CANARY}\n")
    again = asked(address, "POST", "/exec/programmatic", json=go_on)
    assert again.status_code == 404


def test_pictures_and_changed_files_come_back_and_unchanged_ones_do_not(address: str) -> None:
    session, file = uploaded(address, "data.csv", b"1")
    code = """
class Chart:
    def _repr_png_(self):
        return b"\\x89PNG"

display(Chart())
open("same.csv", "w").write("1")
open("data.csv", "a").write("2")
open(".hidden", "w").write("x")
open("/tmp/scratch", "w").write("x")
"""
    answer = executed(address, code, session_id=session)
    assert answer["session_id"] == session
    assert [each["name"] for each in answer["files"]] == ["data.csv", "same.csv", "plot_1.png"]
    kept = {each["name"]: each["id"] for each in answer["files"]}
    assert kept["data.csv"] == file
    assert asked(address, "GET", f"/download/{session}/{file}").text == "12"
    picture = asked(address, "GET", f"/download/{session}/{kept['plot_1.png']}")
    assert picture.content == b"\x89PNG"
    rewritten = executed(address, "open('same.csv', 'w').write('1')", session_id=session)
    assert rewritten["files"] == []


def test_files_are_read_and_written_as_librechats_server_does_it(address: str) -> None:
    contents = "é 'quoted' $HOME"
    payload = json.dumps(
        {
            "file_path": "/mnt/data/sub/a b.txt",
            "content_b64": base64.b64encode(contents.encode()).decode(),
        }
    )
    write = [
        "python3 - <<'PY'",
        "import base64, json, os",
        f"payload = {json.dumps(base64.b64encode(payload.encode()).decode())}",
        "data = json.loads(base64.b64decode(payload).decode('utf-8'))",
        "path = data['file_path']",
        "os.makedirs(os.path.dirname(path), exist_ok=True)",
        "with open(path, 'wb') as f:",
        "    f.write(base64.b64decode(data['content_b64']))",
        'print(f"WROTE to {path}")',
        "PY",
    ]
    body = {"lang": "bash", "code": "\n".join(write)}
    written = asked(address, "POST", "/exec", json=body).json()
    assert written["stdout"] == "WROTE to /mnt/data/sub/a b.txt\n", written
    assert [each["name"] for each in written["files"]] == ["sub/a b.txt"]
    body = {"lang": "bash", "code": "cat '/mnt/data/sub/a b.txt'", "files": written["files"]}
    assert asked(address, "POST", "/exec", json=body).json()["stdout"] == contents
    body["code"] = "cat '/mnt/data/none'"
    missing = asked(address, "POST", "/exec", json=body).json()
    assert missing["stdout"] == ""
    assert "No such file" in missing["stderr"]


def test_code_that_takes_too_long_or_has_no_such_language_is_told_so(address: str) -> None:
    answer = executed(address, "print('begun')\nwhile True: pass")
    assert answer["stdout"] == "begun\n"
    assert "the limit is 5 s" in answer["stderr"]
    body = {"lang": "js", "code": "1"}
    other = asked(address, "POST", "/exec", json=body).json()
    assert other["stdout"] == ""
    assert "has to be `py` or `bash`" in other["stderr"]
    for body, said in [
        ({"lang": "py"}, "missing field `code`"),
        ({"lang": "py", "code": "1", "args": "x"}, "at ['args']"),
    ]:
        refused = asked(address, "POST", "/exec", json=body)
        assert refused.status_code == 400, refused.text
        assert said in refused.json()["error"], refused.text
    for body, said in [
        ({}, "neither `code` nor `continuation_token`"),
        ({"code": "1", "lang": "ts"}, "has to be `py` or `bash`"),
        ({"code": "1", "tools": [{"name": "a b"}, {"name": "a-b"}]}, "the same name `a_b`"),
        ({"code": "1", "tools": [{"name": "!"}]}, "name"),
    ]:
        refused = asked(address, "POST", "/exec/programmatic", json=body)
        assert refused.status_code in (400, 422), refused.text
        assert said in refused.json()["error"], refused.text
    short = {"code": "while True: pass", "timeout": 300, "tools": []}
    ended = asked(address, "POST", "/exec/programmatic", json=short).json()
    assert ended["status"] == "error"
    assert "0.3" in ended["error"]
