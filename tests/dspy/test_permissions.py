"""What DSPy's options allow: files, variables of the environment, servers; and nothing besides."""

import http.server
import os
import tempfile
import threading
import unittest

from interpreter import BIN, MODE, Case, CodeExecutionError, CodeInterpreterError, better, make

import dspy

ENVIRONMENT = {"ISOLET_TEST_SHOWN": "shown", "ISOLET_TEST_SECRET": "canary-1b7f"}


def allowing(**options):
    """An interpreter with these permissions. DSPy tells Deno of them, but no command of the user's."""
    if MODE != "command":
        return make(**options)
    flags = {
        "enable_read_paths": "--allow-read",
        "enable_write_paths": "--allow-write",
        "enable_env_vars": "--allow-env",
        "enable_network_access": "--allow-net",
    }
    command = [BIN, "dspy"]
    for option, flag in flags.items():
        for value in options.get(option, ()):
            path = os.path.realpath(value) if option.endswith("paths") else value
            command += [flag, path]
    return dspy.PythonInterpreter(deno_command=command, **options)


class Server:
    """A server on this machine, and what it saw."""

    def __enter__(self):
        seen = self.seen = []

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                seen.append(self.path)
                self.send_response(200)
                self.send_header("Content-Length", "2")
                self.end_headers()
                self.wfile.write(b"ok")

            def log_message(self, *args):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever).start()
        return self

    def __exit__(self, *exc):
        self.server.shutdown()
        self.server.server_close()


class Files(Case):
    def setUp(self):
        self.directory = tempfile.TemporaryDirectory()
        self.addCleanup(self.directory.cleanup)

    def file(self, name, contents):
        path = os.path.join(self.directory.name, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(contents)
        return path

    def contents(self, path):
        with open(path, encoding="utf-8") as file:
            return file.read()

    def allowing(self, **options):
        interpreter = allowing(**options)
        self.addCleanup(interpreter.shutdown)
        return interpreter

    def test_a_file_to_read_is_at_its_name_and_stays_as_it_is(self):
        path = self.file("notes.txt", "hé\n")
        it = self.allowing(enable_read_paths=[path])
        self.assertEqual(it("open('/sandbox/notes.txt', encoding='utf-8').read()"), "hé\n")
        it("open('/sandbox/notes.txt', 'w').write('changed')")
        self.assertEqual(it("open('/sandbox/notes.txt').read()"), "changed")
        self.assertEqual(self.contents(path), "hé\n")

    def test_a_file_to_write_is_written_back(self):
        path = self.file("out.txt", "before")
        new = os.path.join(self.directory.name, "new.txt")
        it = self.allowing(enable_write_paths=[path, new])
        it("f = open('/sandbox/out.txt', 'a')\nf.write(' after')\nf.close()\nopen('/sandbox/new.txt', 'w').write('new')")
        # It is told without waiting: the next answer comes after it.
        it("1")
        self.assertEqual((self.contents(path), self.contents(new)), ("before after", "new"))

    def test_a_file_is_not_written_back_if_that_is_off(self):
        path = self.file("out.txt", "before")
        it = self.allowing(enable_write_paths=[path], sync_files=False)
        it("open('/sandbox/out.txt', 'w').write('after')")
        it("1")
        self.assertEqual(self.contents(path), "before")

    def test_a_file_that_is_not_there_is_an_error(self):
        it = self.allowing(enable_read_paths=[os.path.join(self.directory.name, "nope")])
        with self.assertRaises((FileNotFoundError, CodeInterpreterError)):
            it("1")

    @better("the files of the host are named to the code")
    def test_other_files_are_not_there(self):
        path = self.file("notes.txt", "x")
        secret = self.file("secret.txt", "canary")
        it = self.allowing(enable_read_paths=[path])
        for name in (path, secret, "/sandbox/secret.txt", "/sandbox/../" + secret, "/etc/passwd"):
            self.assertIn("FileNotFoundError", self.fails(it, f"open({name!r}).read()"))


if MODE == "command":

    class CommandLine(Case):
        """The command line is the user's own there, and DSPy does not write what it allows into it."""

        def test_what_the_command_line_does_not_allow_is_not_mounted(self):
            directory = tempfile.TemporaryDirectory()
            self.addCleanup(directory.cleanup)
            path = os.path.join(directory.name, "notes.txt")
            with open(path, "w", encoding="utf-8") as file:
                file.write("canary")
            it = dspy.PythonInterpreter(deno_command=[BIN, "dspy"], enable_read_paths=[path])
            self.addCleanup(it.shutdown)
            with self.assertRaisesRegex(CodeInterpreterError, "allow-read"):
                it("open('/sandbox/notes.txt').read()")


class Environment(Case):
    def setUp(self):
        os.environ.update(ENVIRONMENT)
        self.addCleanup(lambda: [os.environ.pop(name) for name in ENVIRONMENT])

    def test_a_variable_is_seen_if_it_is_named(self):
        it = allowing(enable_env_vars=["ISOLET_TEST_SHOWN"])
        self.addCleanup(it.shutdown)
        code = "import os\n[os.environ.get('ISOLET_TEST_SHOWN'), os.environ.get('ISOLET_TEST_SECRET')]"
        self.assertEqual(it(code), ["shown", None])

    def test_no_variable_is_seen_otherwise(self):
        it = allowing()
        self.addCleanup(it.shutdown)
        self.assertEqual(it("import os\n[n for n in os.environ if n.startswith('ISOLET_TEST')]"), [])


class Network(Case):
    FETCH = "from pyodide.http import pyfetch\nr = await pyfetch('http://127.0.0.1:{}/x')\nawait r.text()"

    def test_an_allowed_server_is_reached(self):
        with Server() as server:
            for rule in ("127.0.0.1", f"127.0.0.1:{server.port}"):
                it = allowing(enable_network_access=[rule])
                self.addCleanup(it.shutdown)
                self.assertEqual(it(self.FETCH.format(server.port)), "ok")
            self.assertEqual(server.seen, ["/x", "/x"])

    def test_another_server_is_not(self):
        with Server() as server:
            for rules in ([], ["example.com"], ["127.0.0.1:1024"]):
                it = allowing(enable_network_access=rules)
                self.addCleanup(it.shutdown)
                with self.assertRaisesRegex(CodeExecutionError, "allow-net"):
                    it(self.FETCH.format(server.port))
            self.assertEqual(server.seen, [])

    @better("urllib has no connections there")
    def test_pythons_own_client_needs_no_await(self):
        with Server() as server:
            it = allowing(enable_network_access=[f"127.0.0.1:{server.port}"])
            self.addCleanup(it.shutdown)
            code = f"import urllib.request\nurllib.request.urlopen('http://127.0.0.1:{server.port}/u').read().decode()"
            self.assertEqual(it(code), "ok")


if __name__ == "__main__":
    unittest.main()
