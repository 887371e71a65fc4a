// What test_node_e2b_javascript.py has E2B's client for JavaScript do with a node.
import assert from "node:assert/strict";
import { NotFoundError, Sandbox, SandboxError, TimeoutError } from "@e2b/code-interpreter";

const sandbox = await Sandbox.create({ metadata: { for: "test" }, envs: { A: "a" } });
assert.ok(await sandbox.isRunning());

const lines = [];
await sandbox.runCode("x = 1");
const execution = await sandbox.runCode(
  "import os, sys\nprint('a')\nprint('b', file=sys.stderr)\nx + 1, os.environ['A'], os.environ['B']",
  { envs: { B: "b" }, onStdout: (message) => lines.push(message.line) },
);
assert.equal(execution.text, "(2, 'a', 'b')");
assert.deepEqual([lines.join(""), execution.logs.stderr.join("")], ["a\n", "b\n"]);
assert.equal(execution.executionCount, 2);

const failed = await sandbox.runCode("1 / 0");
assert.equal(failed.error.name, "ZeroDivisionError");
assert.match(failed.error.traceback, /1 \/ 0/);

const shown = await sandbox.runCode("from IPython.display import HTML\nHTML('<b>')");
assert.deepEqual([shown.results[0].html, shown.results[0].isMainResult], ["<b>", true]);

const context = await sandbox.createCodeContext({ cwd: "/tmp" });
const there = await sandbox.runCode("import os; 'x' in globals(), os.getcwd()", { context });
assert.equal(there.text, "(False, '/tmp')");
assert.equal((await sandbox.listCodeContexts()).length, 2);
await sandbox.restartCodeContext(context);
await sandbox.removeCodeContext(context);
await assert.rejects(sandbox.runCode("1", { context }), NotFoundError);

await sandbox.files.write("data/ä.txt", "ä");
assert.equal(await sandbox.files.read("data/ä.txt"), "ä");
await sandbox.files.write([{ path: "b", data: "1" }, { path: "c", data: new Blob(["2"]) }]);
const names = (await sandbox.files.list(".")).map((entry) => entry.name);
assert.deepEqual(names, ["b", "c", "data"]);
assert.ok(await sandbox.files.exists("b"));
await sandbox.files.rename("b", "d");
assert.ok(!(await sandbox.files.exists("b")));
assert.equal(await sandbox.files.makeDir("data"), false);
await sandbox.files.remove("data");
await assert.rejects(sandbox.files.read("data/ä.txt"), NotFoundError);

assert.equal((await sandbox.commands.run("ls | tr c C")).stdout, "C\nd\n");
await assert.rejects(sandbox.commands.run("exit 3"), { exitCode: 3 });
const sleeper = await sandbox.commands.run("echo a; sleep 1000", { background: true });
assert.equal((await sandbox.commands.list())[0].pid, sleeper.pid);
assert.equal(await sleeper.kill(), true);
await assert.rejects(sleeper.wait(), { exitCode: -1, error: "signal: killed" });
await assert.rejects(sandbox.runCode("while True: pass", { timeoutMs: 500 }), TimeoutError);
assert.equal((await sandbox.runCode("x")).text, "1");

assert.equal(await sandbox.pause(), true);
assert.equal(await sandbox.isRunning(), false);
const again = await Sandbox.connect(sandbox.sandboxId);
assert.equal((await again.runCode("x")).text, "1");
assert.deepEqual((await again.getInfo()).metadata, { for: "test" });

assert.equal(await again.kill(), true);
assert.equal(await again.kill(), false);
assert.equal(await again.isRunning(), false);
await assert.rejects(again.runCode("1"), SandboxError);
console.log("all is as it should be");
