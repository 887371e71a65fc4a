"""Records the tools of a public MCP server from npm: catalogues/NAME.json.

record.py [--in DIR] [--node PROGRAM] [--licence TEXT] NAME PACKAGE [VARIABLE=VALUE…] [ARGS…]

npm installs PACKAGE into DIR, or into a directory that is removed afterwards. The server gets ARGS
and, besides PATH, only the VARIABLEs, whose values need not be real: nothing but its list is asked.
--licence is for a package that does not name its licence.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

CATALOGUES = Path(__file__).parent / "catalogues"
PERMISSIVE = {"MIT", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "ISC"}
INSTALL_SECONDS = 300
SERVER_SECONDS = 60
MOST_PAGES = 100


def installed(package, directory):
    """Returns the directory of the package, which npm installs if it is not there yet."""
    name = re.sub(r"(?<=.)@[^/]*$", "", package)
    path = directory / "node_modules" / name
    if not path.is_dir():
        npm = ["npm", "install", "--ignore-scripts", "--no-audit", "--no-fund", "--silent"]
        npm += ["--prefix", str(directory), package]
        subprocess.run(npm, check=True, timeout=INSTALL_SECONDS, stdin=subprocess.DEVNULL)
    return path


def program(path, about):
    """Returns the file that the package's command runs."""
    commands = about["bin"]
    if isinstance(commands, dict):
        last = about["name"].rpartition("/")[2]
        commands = commands.get(last) or next(iter(commands.values()))
    return path / commands


class Server:
    """A process that answers requests on its standard output."""

    def __init__(self, command, variables, directory):
        environment = {"PATH": os.environ["PATH"], "HOME": str(directory), **variables}
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env=environment, cwd=directory)
        self.said = b""
        # The server is ended when its time is over, which ends each wait for it.
        self.timer = threading.Timer(SERVER_SECONDS, self.process.kill)
        self.timer.start()
        self.reader = threading.Thread(target=self.listen, daemon=True)
        self.reader.start()
        self.count = 0

    def listen(self):
        self.said = self.process.stderr.read()

    def send(self, message):
        line = json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n"
        self.process.stdin.write(line)
        self.process.stdin.flush()

    def ask(self, method, params):
        self.count += 1
        self.send({"id": self.count, "method": method, "params": params})
        for line in self.process.stdout:
            try:
                message = json.loads(line)
            except ValueError:
                continue
            if message.get("id") == self.count and "method" not in message:
                if "result" not in message:
                    raise RuntimeError(f"{method} fails: {message.get('error')}")
                return message["result"]
            if "id" in message and "method" in message:
                # Requests of the server, such as for roots.
                self.send({"id": message["id"], "error": {"code": -32601, "message": "no"}})
        raise RuntimeError("the server has ended")

    def end(self):
        self.timer.cancel()
        self.process.kill()
        self.process.wait()
        self.reader.join(SERVER_SECONDS)


def tools(server):
    """Returns the definitions, exactly as the server sends them."""
    client = {"name": "record", "version": "1"}
    version = "2025-06-18"
    server.ask("initialize", {
        "protocolVersion": version, "capabilities": {}, "clientInfo": client})
    server.send({"method": "notifications/initialized"})
    listed, params = [], {}
    for _ in range(MOST_PAGES):
        page = server.ask("tools/list", params)
        listed += page["tools"]
        if not page.get("nextCursor"):
            return listed
        params = {"cursor": page["nextCursor"]}
    raise RuntimeError("the list has no end")


def scrubbed(text, directory):
    """Returns the text without paths of this machine."""
    paths = {str(directory.resolve()), str(directory), str(Path.home())}
    for path in sorted(paths, key=len, reverse=True):
        text = text.replace(path, "/home/user")
    return text


def rendered(catalogue):
    """Returns JSON with one tool a line, so that a change shows which tool has changed."""
    def compact(value):
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))

    head = [f' "{name}": {compact(catalogue[name])},' for name in ("server", "version", "licence")]
    rows = ",\n".join("  " + compact(tool) for tool in catalogue["tools"])
    return "{\n" + "\n".join(head) + '\n "tools": [\n' + rows + "\n ]\n}\n"


def record(options, directory):
    path = installed(options.package, directory)
    about = json.loads((path / "package.json").read_text())
    licence = options.licence or about.get("license")
    if licence not in PERMISSIVE and not options.licence:
        sys.exit(f"the licence of {options.package} is {licence}; --licence TEXT states another")
    settings = [word for word in options.words if re.match(r"[A-Z][A-Z0-9_]*=", word)]
    arguments = [word for word in options.words if word not in settings]
    variables = dict(word.split("=", 1) for word in settings)
    with tempfile.TemporaryDirectory() as home:
        arguments = [word.replace("{home}", home) for word in arguments]
        command = [options.node, str(program(path, about)), *arguments]
        server = Server(command, variables, Path(home))
        try:
            listed = tools(server)
        except (RuntimeError, BrokenPipeError) as error:
            server.end()
            sys.exit(f"{options.package}: {error}\n{server.said.decode(errors='replace')}")
        server.end()
        text = rendered({"server": about["name"], "version": about["version"],
                         "licence": licence, "tools": listed})
        text = scrubbed(scrubbed(text, Path(home)), directory)
    (CATALOGUES / f"{options.name}.json").write_text(text)
    print(f"{options.name}: {len(listed)} tools, {len(text)} characters")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--in", dest="directory", type=Path)
    parser.add_argument("--node", default="node")
    parser.add_argument("--licence")
    parser.add_argument("name")
    parser.add_argument("package")
    parser.add_argument("words", nargs=argparse.REMAINDER)
    options = parser.parse_args()
    if options.directory:
        record(options, options.directory.resolve())
        return
    with tempfile.TemporaryDirectory() as directory:
        record(options, Path(directory))


if __name__ == "__main__":
    main()
