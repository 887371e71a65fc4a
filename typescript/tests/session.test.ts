// Sessions over a server of this machine: runs, variables, files, copies, and their ends.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import os from "node:os";
import path from "node:path";
import { after, before, test } from "node:test";

import * as isolet from "../src/index.js";

let scratch: string;
before(async () => {
  scratch = await mkdtemp(path.join(os.tmpdir(), "isolet-"));
});
after(() => rm(scratch, { recursive: true }));

test("a run has its value, output and status, and a session keeps variables", async () => {
  const sandbox = new isolet.Sandbox();
  await using session = await sandbox.session({ inputs: { x: 40 } });
  const first = await session.run("y = x + 2\nprint('é', y)\ny");
  assert.deepEqual([first.ok, first.value, first.repr, first.stdout], [true, 42, "42", "é 42\n"]);
  const raised = await session.run("import sys\nprint(1, file=sys.stderr)\n{}['key']");
  assert.equal(raised.status, "raised");
  assert.deepEqual([raised.stderr, raised.failure], ["1\n", "KeyError: 'key'"]);
  assert.deepEqual([raised.error?.type, raised.error?.args], ["KeyError", ["key"]]);
  assert.match(raised.text, /^1\nTraceback[\s\S]*KeyError: 'key'$/);
  assert.throws(() => raised.throwForError(), isolet.GuestError);
  assert.equal(await session.eval("y"), 42);
  const exited = await session.run("import sys; sys.exit(3)");
  assert.deepEqual([exited.ok, exited.exitCode, exited.failure], [
    false,
    3,
    "the run exited with status 3",
  ]);
  assert.equal((await isolet.run("a + b", { inputs: { a: "x", b: "y" } })).value, "xy");
});

test("variables are read, set, listed and deleted", async () => {
  await using session = await new isolet.Sandbox().session();
  await session.set({ names: ["a"], n: 2n ** 70n });
  assert.deepEqual(await session.get("names"), ["a"]);
  assert.equal(await session.get("n"), 2n ** 70n);
  assert.equal(await session.get("nothing"), undefined);
  assert.deepEqual((await session.variables()).map(({ name, type }) => [name, type]), [
    ["names", "list"],
    ["n", "int"],
  ]);
  assert.deepEqual([await session.delete("n"), await session.delete("n")], [true, false]);
});

test("values cross in both directions as they are", async () => {
  await using session = await new isolet.Sandbox().session();
  const nested: Record<string, isolet.Value> = {};
  Object.defineProperty(nested, "__proto__", { value: 1, enumerable: true });
  const values: isolet.Value[] = [
    null,
    true,
    0,
    -1,
    2 ** 31,
    -(2 ** 31) - 1,
    Number.MAX_SAFE_INTEGER,
    2n ** 64n,
    -(2n ** 200n),
    0.5,
    -0,
    1e300,
    Infinity,
    "",
    "é\u{1f600}\0",
    new Uint8Array([0, 255]),
    [],
    [[1], ["x"]],
    {},
    { $bytes: "x", a: { b: null } },
    nested,
    new Map<isolet.Value, isolet.Value>([
      [1, "a"],
      ["b", [2]],
    ]),
  ];
  assert.deepEqual(await session.eval("values", { inputs: { values } }), values);
  assert.ok(Number.isNaN(await session.eval("v", { inputs: { v: NaN } })));
  const types = "[type(v).__name__ for v in values]";
  assert.deepEqual(await session.eval(types, { inputs: { values: [1, 1.5, 2n, "a", new Map()] } }), [
    "int",
    "float",
    "int",
    "str",
    "dict",
  ]);
  assert.deepEqual(await session.eval("(1, 2)"), [1, 2]);
  const cut = await session.run("class A: pass\nA()");
  assert.ok(cut.ok && cut.value === null && cut.valueError !== null);
  await assert.rejects(session.eval("A()"), isolet.TransferError);
});

test("what cannot cross is refused with its place, before anything is sent", async () => {
  await using session = await new isolet.Sandbox().session();
  const loop: Record<string, unknown> = {};
  loop["self"] = loop;
  for (const [value, place] of [
    [new Date(), /`inputs\["x"\]` is an object of the class Date/],
    [{ a: [1, Symbol("s")] }, /`inputs\["x"\]\["a"\]\[1\]` is a symbol/],
    ["\ud800", /half of a surrogate pair/],
    [loop, /nested deeper than 200, or in itself/],
  ] as const) {
    const inputs = { x: value as never };
    await assert.rejects(session.run("1", { inputs }), (error: Error) => {
      assert.ok(error instanceof isolet.TransferError);
      assert.match(error.message, place);
      return true;
    });
  }
  assert.equal(await session.eval("1"), 1);
});

test("files are written, read, listed and removed", async () => {
  await writeFile(path.join(scratch, "host.txt"), "of the host");
  const mounts = { "/data": scratch };
  await using session = await new isolet.Sandbox({ mounts }).session();
  await session.files.put("a.txt", "é");
  await session.files.put("b.bin", new Uint8Array([0, 1]));
  const run = await session.run("open('c', 'w').write(open('a.txt').read() * 2)");
  assert.deepEqual(run.files, [{ path: "/home/user/c", size: 4 }]);
  assert.equal(await session.files.text("c"), "éé");
  assert.deepEqual(await session.files.get("b.bin"), new Uint8Array([0, 1]));
  assert.equal(await session.files.get("none"), undefined);
  assert.deepEqual((await session.files.list()).map((each) => each.name), ["a.txt", "b.bin", "c"]);
  assert.deepEqual([await session.files.remove("c"), await session.files.remove("c")], [true, false]);
  assert.equal(await session.files.text("/data/host.txt"), "of the host");
  const denied = await session.run("open('/data/host.txt', 'w')");
  assert.equal(denied.error?.type, "PermissionError");
});

test("a stream yields output, displays and the execution, and may be left", async () => {
  await using session = await new isolet.Sandbox().session();
  const code = "from IPython.display import HTML\nprint('a')\ndisplay(HTML('<b>'))\nprint('b')\n7";
  const kinds: string[] = [];
  for await (const item of session.stream(code)) {
    if (item.kind === "output") kinds.push(item.text.trim());
    else if (item.kind === "display") kinds.push(Object.keys(item.data).join());
    else kinds.push(String(item.value));
  }
  assert.deepEqual(kinds, ["a", "text/html,text/plain", "b", "7"]);
  for await (const item of session.stream("x = 1\nwhile True: print('on')")) {
    assert.equal(item.kind, "output");
    break;
  }
  assert.equal(await session.eval("x"), 1, "the session goes on after a run that was left");
});

test("a guest that writes more than is taken waits, and other sessions do not", async () => {
  const sandbox = new isolet.Sandbox({ limits: { runTime: 60 } });
  await using session = await sandbox.session();
  await using other = await sandbox.session();
  let bytes = 0;
  let isFirst = true;
  for await (const item of session.stream("for _ in range(300): print('x' * 99_999)")) {
    if (item.kind === "output") bytes += item.text.length;
    // While the stream is full, another session is asked, which needs the server to be read.
    if (isFirst) assert.equal(await other.eval("1 + 1"), 2);
    isFirst = false;
  }
  assert.equal(bytes, 30_000_000);
});

test("callbacks hear a run while it goes on, and what they throw ends it", async () => {
  await using session = await new isolet.Sandbox().session();
  // A text may come in pieces.
  const heard = { out: "", err: "" };
  const run = await session.run("import sys\nprint('o')\nprint('e', file=sys.stderr)", {
    onStdout: (text) => void (heard.out += text),
    onStderr: (text) => void (heard.err += text),
  });
  assert.deepEqual([heard, run.stdout], [{ out: "o\n", err: "e\n" }, "o\n"]);
  const onStdout = () => {
    throw new RangeError("enough");
  };
  await assert.rejects(session.run("while True: print(1)", { onStdout }), /enough/);
  assert.equal(await session.eval("2"), 2);
});

test("an abort interrupts a run, and the session goes on", async () => {
  await using session = await new isolet.Sandbox().session();
  const controller = new AbortController();
  const options = { signal: controller.signal, onStdout: () => controller.abort(new Error("stop")) };
  await assert.rejects(session.run("x = 1\nprint('on')\nwhile True: pass", options), /stop/);
  assert.equal(await session.eval("x"), 1);
  await assert.rejects(session.run("x = 2", options), /stop/);
  assert.equal(await session.eval("x"), 1, "what is aborted before does not begin");
  const timeout = await session.run("while True: pass", { timeout: 0.2 });
  assert.equal(timeout.status, "timeout");
  assert.throws(() => timeout.throwForError(), isolet.GuestTimeoutError);
});

test("a second run at the same time is busy, and an interrupt ends the first", async () => {
  await using session = await new isolet.Sandbox().session();
  const first = session.run("print('on', flush=True)\nimport time\ntime.sleep(1000)", {
    onStdout: async () => {
      await assert.rejects(session.run("1"), isolet.BusyError);
      await session.interrupt();
    },
  });
  assert.equal((await first).status, "interrupted");
});

test("copies and saved sessions have what the session has", async () => {
  const sandbox = new isolet.Sandbox({ forkable: 2, tools: { ten: () => 10 } });
  const file = path.join(scratch, "saved");
  await using session = await sandbox.session();
  await session.run("x = [1]");
  await using copy = await session.fork();
  await session.run("x.append(2)");
  assert.deepEqual(await copy.eval("[x, ten()]"), [[1], 10]);
  await session.save(file);
  await using again = await sandbox.restore(file);
  assert.deepEqual(await again.eval("[x, ten()]"), [[1, 2], 10]);
  await session.reset();
  assert.deepEqual(await session.variables(), []);
  await using plain = await new isolet.Sandbox().session();
  await assert.rejects(plain.fork(), isolet.ConfigError);
});

test("the shell works on the session's files", async () => {
  await using session = await new isolet.Sandbox().session();
  const run = await session.sh("echo a > f; cat f | tr a-z A-Z; exit 3");
  assert.deepEqual([run.stdout, run.exitCode], ["A\n", 3]);
  assert.equal(await session.eval("open('f').read()"), "a\n");
});

test("a closed session says so, and so does one whose server has ended", async () => {
  const closed = await new isolet.Sandbox().session();
  await closed.close();
  await closed.close();
  assert.equal(closed.alive, false);
  await assert.rejects(closed.run("1"), /was closed/);
  await using server = new isolet.Server();
  const sandbox = new isolet.Sandbox({ server });
  const session = await sandbox.session();
  const pid = Number((await readFile(`/proc/self/task/${process.pid}/children`, "utf8")).trim().split(" ").at(-1));
  const run = session.run("while True: pass");
  process.kill(pid, "SIGKILL");
  await assert.rejects(run, isolet.ServerDiedError);
  assert.equal(session.alive, false);
  await using next = await sandbox.session();
  assert.equal(await next.eval("1"), 1, "the next session starts another server");
});

test("a binary that is none is an error of the start", async () => {
  const missing = new isolet.Sandbox({ server: new isolet.Server({ binary: "/nowhere/isolet" }) });
  await assert.rejects(missing.session(), isolet.StartError);
  const other = new isolet.Sandbox({ server: new isolet.Server({ binary: process.execPath }) });
  await assert.rejects(other.session(), isolet.StartError);
});

test("a program ends when it has nothing more to do, also with an open session", () => {
  const index = new URL("../src/index.js", import.meta.url).href;
  const code = `import { Sandbox } from ${JSON.stringify(index)};
    const session = await new Sandbox().session();
    console.log(await session.eval("6 * 7"));`;
  const ended = spawnSync(process.execPath, ["--input-type=module", "--eval", code], {
    encoding: "utf8",
    timeout: 60_000,
  });
  assert.deepEqual([ended.stdout, ended.stderr, ended.status], ["42\n", "", 0]);
});

test("a recorded session goes on with its journal, and is looked back at", async () => {
  const journal = path.join(scratch, "run.journal");
  let asked = 0;
  const tools = {
    ask: (n: number) => {
      asked += 1;
      return n * 10;
    },
  };
  const sandbox = new isolet.Sandbox({ tools });
  const code = "first = ask(1)\nprint(first)\nfor n in range(2, 4): last = ask(n)\nlast";
  const session = await sandbox.session({ journal });
  assert.equal((await session.run(code)).value, 30);
  await session.close();
  await using resumed = await sandbox.resume({ path: journal, maxBytes: 1 << 20 });
  const heard: string[] = [];
  const again = await resumed.goOn({ onStdout: (text) => heard.push(text) });
  assert.deepEqual([again?.value, again?.stdout, heard, asked], [30, "10\n", ["10\n"], 3]);
  assert.equal(await resumed.goOn(), null);
  await resumed.close();
  await using looked = await new isolet.Sandbox().replay(journal, { untilCall: 3 });
  assert.equal((await looked.goOn())?.status, "interrupted");
  assert.equal((await looked.bindLocals())?.line, 3);
  assert.deepEqual(await looked.eval("[first, n, last]"), [10, 3, 20]);
  await assert.rejects(sandbox.session({ journal }), isolet.JournalError);
});
