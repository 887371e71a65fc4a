"""The messages themselves, line by line: what the runner answers to whatever it is sent, and nothing else."""

import json
import os
import subprocess
import tempfile
import unittest

from interpreter import BIN, MODE, better, make


class Runner:
    """The runner's process, started as DSPy starts it, without DSPy in between."""

    def __init__(self, test):
        self.process = subprocess.Popen(
            make().deno_command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            env=os.environ | {"DENO_NO_PACKAGE_JSON": "1"},
        )
        test.addCleanup(self.process.communicate)

    def send(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def receive(self):
        line = self.process.stdout.readline()
        assert line.endswith("\n"), f"the runner ended: {line!r}"
        message = json.loads(line)
        if MODE == "deno" and message.get("method") == "unhandled_error":
            return self.receive()
        assert message.pop("jsonrpc") == "2.0"
        return message

    def ask(self, method, params=None, id="1"):
        message = {"jsonrpc": "2.0", "method": method, "id": id}
        if params is not None:
            message["params"] = params
        self.send(json.dumps(message))
        return self.receive()

    def end(self):
        """What comes after the last line, and the exit code."""
        rest, errors = self.process.communicate()
        return rest, errors, self.process.returncode


class Messages(unittest.TestCase):
    def setUp(self):
        self.runner = Runner(self)

    def test_answers_carry_the_id_of_the_request(self):
        for id in ("0123456789abcdef" * 2, "", "é", 0, 7, "x" * 1000):
            self.assertEqual(self.runner.ask("execute", {"code": "1"}, id), {"result": {"output": 1}, "id": id})

    def test_an_answer_is_one_of_three(self):
        self.assertEqual(
            self.runner.ask("execute", {"code": "print('a\\nb')"}), {"result": {"output": "a\nb\n"}, "id": "1"}
        )
        self.assertEqual(
            self.runner.ask("execute", {"code": "SUBMIT(5)"}), {"result": {"final": {"output": 5}}, "id": "1"}
        )
        answer = self.runner.ask("execute", {"code": "raise ValueError(7)"})
        self.assertEqual(answer["id"], "1")
        self.assertEqual(answer["error"]["code"], -32003)
        self.assertEqual(answer["error"]["data"], {"type": "ValueError", "args": [7]})
        self.assertIsInstance(answer["error"]["message"], str)

    def test_errors_have_the_codes_of_their_classes(self):
        names = "SyntaxError NameError TypeError ValueError AttributeError IndexError KeyError RuntimeError".split()
        for number, name in enumerate(names):
            error = self.runner.ask("execute", {"code": f"raise {name}('x')"})["error"]
            self.assertEqual((error["code"], error["data"]["type"]), (-32000 - number, name))
        error = self.runner.ask(
            "execute", {"code": "class CodeInterpreterError(Exception): pass\nraise CodeInterpreterError(1)"}
        )
        self.assertEqual(error["error"]["code"], -32008)
        for code in (
            "1 / 0",
            "raise KeyboardInterrupt",
            "class Own(Exception): pass\nraise Own",
            "import sys; sys.exit()",
        ):
            self.assertEqual(self.runner.ask("execute", {"code": code})["error"]["code"], -32099)

    def test_a_syntax_error_has_no_arguments(self):
        self.assertEqual(
            self.runner.ask("execute", {"code": "def"})["error"]["data"], {"type": "SyntaxError", "args": []}
        )

    def test_what_is_no_request_is_told_with_its_id_if_it_has_one(self):
        for line, id in (("{", None), ("nonsense", None), ("", None), ("{'a': 1}", None), ('{"id": 7, "x": NaN}', 7)):
            self.runner.send(line)
            answer = self.runner.receive()
            self.assertEqual((answer["id"], answer["error"]["code"]), (id, -32700), line)
        old = '{"jsonrpc": "1.0", "method": "execute", "id": "1"}'
        strangers = [(line, None) for line in ("[]", "5", "null", '"text"', "{}")]
        for line, id in [*strangers, (old, "1"), ('{"method": 5, "id": 8}', 8)]:
            self.runner.send(line)
            answer = self.runner.receive()
            self.assertEqual((answer["id"], answer["error"]["code"]), (id, -32600), line)
        self.assertEqual(self.runner.ask("execute", {"code": "1"}), {"result": {"output": 1}, "id": "1"})

    def test_an_unknown_method_is_told(self):
        answer = self.runner.ask("nope")
        self.assertEqual(answer, {"error": {"code": -32601, "message": "Method not found: nope"}, "id": "1"})

    def test_missing_code_is_empty_code(self):
        self.assertEqual(self.runner.ask("execute"), {"result": {"output": ""}, "id": "1"})
        self.assertEqual(self.runner.ask("execute", {}), {"result": {"output": ""}, "id": "1"})

    def test_registering_answers_with_the_names(self):
        tools = [
            "plain",
            {"name": "typed", "parameters": [{"name": "a", "type": "NoneType"}, {"name": "b", "default": [1, None]}]},
        ]
        outputs = [{"name": "x", "type": "int"}, {"name": "y"}]
        answer = self.runner.ask("register", {"tools": tools, "outputs": outputs})
        self.assertEqual(answer, {"result": {"tools": ["plain", "typed"], "outputs": ["x", "y"]}, "id": "1"})
        self.assertEqual(self.runner.ask("register", {}), {"result": {"tools": [], "outputs": []}, "id": "1"})

    def test_a_tool_call_is_a_request_and_waits_for_its_answer(self):
        parameters = [{"name": "a"}, {"name": "b", "type": "int", "default": 5}]
        self.runner.ask("register", {"tools": [{"name": "tool", "parameters": parameters}]})
        call = self.runner.ask("execute", {"code": "tool({'k': [None]})"})
        self.assertEqual(
            (call["method"], call["params"]), ("tool_call", {"name": "tool", "kwargs": {"a": {"k": [None]}, "b": 5}})
        )
        self.assertIsInstance(call["id"], str)
        self.runner.send(
            json.dumps({"jsonrpc": "2.0", "result": {"value": '[1, "é"]', "type": "json"}, "id": call["id"]})
        )
        self.assertEqual(self.runner.receive(), {"result": {"output": [1, "é"]}, "id": "1"})

        ids = {call["id"]}
        for kind, value in (("string", "[1]"), ("string", "")):
            call = self.runner.ask("execute", {"code": "tool(1)"})
            ids.add(call["id"])
            self.runner.send(json.dumps({"jsonrpc": "2.0", "result": {"value": value, "type": kind}, "id": call["id"]}))
            self.assertEqual(self.runner.receive(), {"result": {"output": value}, "id": "1"})
        self.assertEqual(len(ids), 3, "ids are used again")

    def test_the_error_of_a_tool_is_a_runtime_error(self):
        self.runner.ask("register", {"tools": ["tool"]})
        call = self.runner.ask("execute", {"code": "tool()"})
        error = {"code": -32003, "message": "text", "data": {"type": "ValueError"}}
        self.runner.send(json.dumps({"jsonrpc": "2.0", "error": error, "id": call["id"]}))
        self.assertEqual(self.runner.receive()["error"]["data"], {"type": "RuntimeError", "args": ["ValueError: text"]})
        call = self.runner.ask("execute", {"code": "tool()"})
        self.runner.send(json.dumps({"jsonrpc": "2.0", "error": {}, "id": call["id"]}))
        self.assertEqual(self.runner.receive()["error"]["data"]["args"], ["ToolError: Tool call failed"])

    def test_an_answer_to_another_call_is_an_error_of_this_one(self):
        self.runner.ask("register", {"tools": ["tool"]})
        for line in ('{"jsonrpc": "2.0", "result": {"value": "1", "type": "json"}, "id": "another"}', "nonsense"):
            self.runner.ask("execute", {"code": "tool()"})
            self.runner.send(line)
            data = self.runner.receive()["error"]["data"]
            self.assertEqual(data["type"], "RuntimeError")
            self.assertTrue(data["args"][0].startswith("Tool bridge error for 'tool': "), data)
        self.assertEqual(self.runner.ask("execute", {"code": "1"}), {"result": {"output": 1}, "id": "1"})

    @better("ends the runner")
    def test_what_cannot_be_registered_is_told(self):
        for tool in (
            "not a name",
            "class",
            "a(): pass\nimport os\ndef b",
            {"name": "t", "parameters": [{"name": "x y"}]},
            5,
        ):
            answer = self.runner.ask("register", {"tools": [tool]})
            self.assertIn("error", answer, tool)
            self.assertEqual(self.runner.ask("execute", {"code": "1"}), {"result": {"output": 1}, "id": "1"})

    def test_a_variable_is_a_file_for_the_code(self):
        self.assertEqual(
            self.runner.ask("inject_var", {"name": "v", "value": '[1, "é"]'}), {"result": {"injected": "v"}, "id": "1"}
        )
        code = "import json\njson.loads(open('/tmp/dspy_vars/v.json').read())"
        self.assertEqual(self.runner.ask("execute", {"code": code}), {"result": {"output": [1, "é"]}, "id": "1"})

    def test_a_file_that_is_not_there_cannot_be_mounted(self):
        with tempfile.TemporaryDirectory() as directory:
            params = {"host_path": os.path.join(directory, "nope"), "virtual_path": "/sandbox/nope"}
            error = self.runner.ask("mount_file", params)["error"]
        self.assertEqual(error["code"], -32007)
        self.assertTrue(error["message"].startswith("Failed to mount file: "), error)

    def test_notifications_are_not_answered(self):
        self.runner.send('{"jsonrpc": "2.0", "method": "sync_file", "params": {"virtual_path": "/sandbox/nope"}}')
        self.assertEqual(self.runner.ask("execute", {"code": "1"}), {"result": {"output": 1}, "id": "1"})


class End(unittest.TestCase):
    def test_shutdown_ends_it_quietly(self):
        runner = Runner(self)
        runner.ask("execute", {"code": "import sys; print('x', file=sys.stderr)"})
        runner.send('{"jsonrpc": "2.0", "method": "shutdown"}')
        self.assertEqual(runner.end(), ("", "", 0))

    def test_the_end_of_its_input_ends_it_quietly(self):
        self.assertEqual(Runner(self).end(), ("", "", 0))
        runner = Runner(self)
        runner.ask("execute", {"code": "1"})
        self.assertEqual(runner.end(), ("", "", 0))

    def test_the_end_of_its_input_inside_a_call_ends_it(self):
        runner = Runner(self)
        runner.ask("register", {"tools": ["tool"]})
        runner.ask("execute", {"code": "tool()"})
        self.assertEqual(runner.end()[2], 0)

    @better("goes on by itself, for ever")
    def test_the_end_of_its_input_ends_code_that_never_ends(self):
        runner = Runner(self)
        runner.ask("register", {"tools": ["tool"]})
        call = runner.ask("execute", {"code": "tool()\nwhile True: pass"})
        runner.send(json.dumps({"jsonrpc": "2.0", "result": {"value": "", "type": "string"}, "id": call["id"]}))
        self.assertIsNotNone(runner.end()[2])


if MODE == "shim":

    class Shim(unittest.TestCase):
        """What DSPy asks `deno` before it runs it, and what DSPy's users do to warm it up."""

        def deno(self, *args):
            ran = subprocess.run(["deno", *args], capture_output=True, text=True, stdin=subprocess.DEVNULL)
            return ran.returncode, ran.stdout

        def test_the_version_is_one_that_dspy_takes(self):
            code, said = self.deno("--version")
            self.assertEqual(code, 0)
            self.assertRegex(said, r"^deno 2\.\d+\.\d+")

        def test_the_cache_directory_is_named(self):
            code, said = self.deno("info", "--json")
            self.assertEqual(code, 0)
            self.assertIsInstance(json.loads(said)["denoDir"], str)

        def test_caching_has_nothing_to_do(self):
            self.assertEqual(self.deno("cache", "npm:pyodide"), (0, ""))
            self.assertEqual(self.deno("cache", "--cached-only", "runner.js"), (0, ""))

        def test_what_it_cannot_do_is_told(self):
            for args in (["eval", "1"], ["nope"]):
                ran = subprocess.run(["deno", *args], capture_output=True, text=True, stdin=subprocess.DEVNULL)
                self.assertNotEqual(ran.returncode, 0, args)
                self.assertRegex(ran.stderr, "isolet")

        def test_the_name_decides(self):
            ran = subprocess.run([BIN, "deno-shim", "--version"], capture_output=True, text=True)
            self.assertEqual((ran.returncode, ran.stdout), self.deno("--version"))


if __name__ == "__main__":
    unittest.main()
