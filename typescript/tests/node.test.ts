// Sessions on nodes, over HTTP, as those of this machine are used.

import assert from "node:assert/strict";
import { AsyncLocalStorage } from "node:async_hooks";
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import http from "node:http";
import net, { type AddressInfo } from "node:net";
import os from "node:os";
import path from "node:path";
import { after, before, test } from "node:test";

import * as isolet from "../src/index.js";
import { Client, type Session } from "../src/node.js";
import { NodeProcess } from "./node_process.js";

const SECONDS = 30;

let scratch: string;
let node: NodeProcess;
let client: Client;
before(async () => {
  scratch = await mkdtemp(path.join(os.tmpdir(), "isolet-"));
  node = await NodeProcess.start();
  client = new Client(node.address);
});
after(async () => {
  client?.close();
  await node?.kill();
  await rm(scratch, { recursive: true });
});

/** Collects what a stream yields: its output as one text, and its end. */
async function collected(
  items: AsyncIterable<isolet.Output | isolet.Display | isolet.Execution>,
): Promise<[string, isolet.Execution | undefined]> {
  let text = "";
  let last: isolet.Execution | undefined;
  for await (const item of items) {
    if (item.kind === "output") text += item.text;
    else if (item.kind === "execution") last = item;
  }
  return [text, last];
}

test("a run does the same as on this machine", async () => {
  const policy = {
    limits: { runTime: 1 },
    submit: { fields: { answer: true as const } },
  };
  for (const code of [
    "print('out'); import sys; print('err', file=sys.stderr); 40 + 2",
    "raise ValueError('no', 1) from KeyError('k')",
    "import sys; sys.exit(3)",
    "print('begun')\nwhile True: pass",
    "open('made.txt', 'w').write('x'); object()",
    "display({'image/png': b'\\x89PNG', 'text/plain': 'p'}, raw=True)",
    "SUBMIT(answer='42')",
    "import os; os._exit(7)",
  ]) {
    const there = await client.run(code, policy);
    const here = await isolet.run(code, policy);
    for (const name of ["status", "value", "valueError", "stdout", "stderr", "exitCode"] as const) {
      assert.deepEqual(there[name], here[name], `${name} of ${code}`);
    }
    for (const name of ["error", "displays", "files", "truncated"] as const) {
      assert.deepEqual(there[name], here[name], `${name} of ${code}`);
    }
    assert.ok(there.usage.wallTime > 0);
  }
});

test("values cross in both directions as they are", async () => {
  await using session = await client.session();
  const values: isolet.Value[] = [
    null,
    true,
    -(2 ** 31) - 1,
    Number.MAX_SAFE_INTEGER,
    2n ** 64n,
    -(2n ** 200n),
    0.1,
    -0,
    2 ** 64,
    1e300,
    -Infinity,
    "é\u{1f600}\0\u2028",
    new Uint8Array([0, 255]),
    [[1], ["x"]],
    {},
    { $bytes: "AA==" },
    { $dict: [], and: "more" },
    new Map<isolet.Value, isolet.Value>([
      [1, "one"],
      [null, [2]],
    ]),
  ];
  assert.deepEqual(await session.eval("values", { inputs: { values } }), values);
  await session.set({ values });
  assert.deepEqual(await session.get("values"), values);
  assert.ok(Number.isNaN(await session.eval("v", { inputs: { v: NaN } })));
  const types = "[type(v).__name__ for v in values]";
  const given = { values: [1, 1.5, 2n, "a", new Map(), 2 ** 64] };
  const names = ["int", "float", "int", "str", "dict", "float"];
  assert.deepEqual(await session.eval(types, { inputs: given }), names);
});

test("what cannot cross is refused with its place", async () => {
  await using session = await client.session();
  const inputs = { x: [1, new Date()] as never };
  await assert.rejects(session.run("x", { inputs }), /`inputs\["x"\]\[1\]` is an object/);
  await assert.rejects(session.set({ "no name": 1 }), isolet.TransferError);
  await assert.rejects(session.eval("object()"), isolet.TransferError);
  const large = new Uint8Array(64 * 2 ** 20 + 1);
  await assert.rejects(session.files.put("large", large), /a request has 67108865 bytes/);
  assert.equal(await session.eval("1"), 1);
});

test("variables are read, set, listed and deleted", async () => {
  await using session = await client.session({ inputs: { x: 40 } });
  assert.equal(await session.eval("x + 2"), 42);
  await session.set({ größe: ["a"], n: 2n ** 70n });
  assert.deepEqual(await session.get("größe"), ["a"]);
  assert.equal(await session.get("n"), 2n ** 70n);
  assert.equal(await session.get("nothing"), undefined);
  const listed = (await session.variables()).map(({ name, type }) => [name, type]);
  assert.deepEqual(listed, [["x", "int"], ["größe", "list"], ["n", "int"]]);
  assert.deepEqual([await session.delete("n"), await session.delete("n")], [true, false]);
});

test("files are written, read and removed", async () => {
  await using session = await client.session();
  const { files } = session;
  await files.put("data/ä b?#%.txt", "é");
  await files.put("/tmp/b.bin", new Uint8Array([0, 1]));
  assert.equal(await session.eval("open('/home/user/data/ä b?#%.txt').read()"), "é");
  assert.equal(await files.text("data/ä b?#%.txt"), "é");
  assert.deepEqual(await files.get("/tmp/b.bin"), new Uint8Array([0, 1]));
  const removed = [await files.remove("/tmp/b.bin"), await files.remove("/tmp/b.bin")];
  assert.deepEqual(removed, [true, false]);
  assert.equal(await files.get("/tmp/b.bin"), undefined);
});

test("a session keeps its state until it is reset, and runs as its options say", async () => {
  await using session = await client.session({ ttl: 50 });
  await session.run("x = 1");
  assert.equal(await session.eval("x + 1"), 2);
  const shell = await session.sh("echo a > f; cat f | tr a-z A-Z; exit 3");
  assert.deepEqual([shell.stdout, shell.exitCode], ["A\n", 3]);
  await session.reset();
  assert.equal((await session.run("x")).failure, "NameError: name 'x' is not defined");
  await session.renew(100);
  await session.renew();
  const options = { stdin: "1 2", allowReturn: true };
  assert.equal(await session.eval("return sum(map(int, input().split()))", options), 3);
  assert.equal((await session.run("while True: pass", { timeout: 0.2 })).status, "timeout");
  await assert.rejects(session.run("1", { argv0: 1 } as never), /`run` has no key `argv0`/);
});

test("tools are served many at once, where their run was begun", async () => {
  const storage = new AsyncLocalStorage<string>();
  const met: (() => void)[] = [];
  const tools: isolet.Tools = {
    meet: async (value: unknown) => {
      await new Promise<void>((resolve) => {
        met.push(resolve);
        if (met.length === 4) for (const each of met) each();
      });
      return [value];
    },
    where: () => storage.getStore() ?? "nowhere",
    fail: (kind: string) => {
      throw kind === "key" ? new isolet.ToolError("KeyError", "k") : new RangeError("größe");
    },
    strange: () => new Date(0),
    large: () => "x".repeat(65 * 2 ** 20),
    mark: (value: unknown) => [value, { $bytes: "AA==" }],
  };
  await using session = await client.session({ tools });
  assert.deepEqual(await session.eval("meet.map([b'1', 2, None, 4])"), [
    [new Uint8Array([0x31])],
    [2],
    [null],
    [4],
  ]);
  assert.equal(await storage.run("here", () => session.eval("where()")), "here");
  assert.deepEqual(await session.eval("mark({'$bytes': 1 << 70})"), [
    { $bytes: 2n ** 70n },
    { $bytes: "AA==" },
  ]);
  assert.match(String((await session.run("fail('key')")).failure), /^KeyError: .*k/);
  assert.equal((await session.run("fail('value')")).failure, "ValueError: größe");
  assert.match(String((await session.run("strange()")).failure), /`strange\(\)` is an object/);
  assert.match(String((await session.run("large()")).failure), /a request has \d+ bytes/);
  assert.equal((await client.run("where()", { tools })).value, "nowhere");
});

test("a tool hears when the guest waits no longer", async () => {
  let hear: () => void;
  const heard = new Promise<void>((resolve) => {
    hear = resolve;
  });
  const forever = isolet.tool({
    name: "forever",
    timeout: 0.2,
    execute: (_, { signal }) => {
      signal.addEventListener("abort", () => hear());
      return new Promise<never>(() => {});
    },
  });
  await using session = await client.session({ tools: [forever] });
  assert.match(String((await session.run("forever()")).failure), /^TimeoutError/);
  await heard;
});

test("output comes as it is written, to callbacks and to streams", async () => {
  const seen: string[] = [];
  await using session = await client.session({ tools: { seen: () => seen } });
  const code = "print('one', flush=True)\nwhile not seen(): pass\n" +
    "import sys; print('two', file=sys.stderr); display({'text/plain': 'x'}, raw=True)";
  const run = await session.run(code, {
    onStdout: (text) => seen.push(text),
    onStderr: (text) => seen.push(text),
    onDisplay: ({ data }) => seen.push(String(data["text/plain"])),
  });
  assert.ok(run.ok, run.text);
  assert.equal(seen.join(""), "one\ntwo\nx");
  const [text, last] = await collected(session.stream("print(1)\n1 / 0"));
  assert.deepEqual([text, last?.failure], ["1\n", "ZeroDivisionError: division by zero"]);
});

test("a guest that writes more than is taken waits", async () => {
  await using session = await client.session();
  let bytes = 0;
  for await (const item of session.stream("for _ in range(300): print('x' * 99_999)")) {
    if (item.kind === "output") bytes += item.text.length;
    // Other requests have connections of their own.
    if (bytes > 0 && bytes < 1_000_000) await client.run("1");
  }
  assert.equal(bytes, 30_000_000);
});

test("a stream that is left interrupts its run, and the session goes on", async () => {
  await using session = await client.session();
  for await (const item of session.stream("x = 1\nwhile True: print('on', flush=True)")) {
    assert.equal(item.kind, "output");
    await assert.rejects(session.run("1"), isolet.BusyError);
    await assert.rejects(session.run("1", { onStdout: () => {} }), isolet.BusyError);
    break;
  }
  assert.equal(await session.eval("x"), 1);
});

test("what a callback throws ends the run", async () => {
  await using session = await client.session();
  const onStdout = () => {
    throw new RangeError("enough");
  };
  await assert.rejects(session.run("while True: print(1)", { onStdout }), /enough/);
  assert.equal(await session.eval("2"), 2);
});

test("an abort interrupts a run, and the session goes on", async () => {
  await using session = await client.session();
  const controller = new AbortController();
  const { signal } = controller;
  const onStdout = () => controller.abort(new Error("stop"));
  const code = "x = 1\nprint('on', flush=True)\nwhile True: pass";
  await assert.rejects(session.run(code, { signal, onStdout }), /stop/);
  assert.equal(await session.eval("x"), 1);
  await assert.rejects(session.run("x = 2", { signal }), /stop/);
  await assert.rejects(client.run("1", { signal }), /stop/);
  assert.equal(await session.eval("x"), 1, "what is aborted before does not begin");
  const early = new AbortController();
  const begun = performance.now();
  const begins = session.run("while True: pass", { signal: early.signal });
  early.abort(new Error("early"));
  await assert.rejects(begins, /early/);
  assert.ok(performance.now() - begun < 4000, "it is interrupted once it has begun");
  assert.equal(await session.eval("x"), 1);
  const whole = new AbortController();
  const run = client.run("stop()\nwhile True: pass", {
    signal: whole.signal,
    tools: { stop: () => whole.abort(new Error("whole")) },
  });
  await assert.rejects(run, /whole/);
});

test("a run that waits for its turn is given up when it is aborted", async () => {
  const file = path.join(scratch, "one.toml");
  await writeFile(file, "max_runs = 1");
  await using one = await NodeProcess.start(["--config", file]);
  const local = new Client(one.address);
  await using busy = await local.session();
  await using session = await local.session();
  const controller = new AbortController();
  const { signal } = controller;
  const first = await busy.run("print('on', flush=True)\nwhile True: pass", {
    onStdout: async () => {
      const second = session.run("x = 1", { signal });
      await untilWaiting(one, 1);
      controller.abort(new Error("stop"));
      await assert.rejects(second, /stop/);
      await untilWaiting(one, 0);
      await busy.interrupt();
    },
  });
  assert.equal(first.status, "interrupted");
  assert.equal(await session.get("x"), undefined);
});

test("a guest that resists an abort loses its session", async () => {
  await using session = await client.session({ limits: { grace: 0.2 }, checkpoint: false });
  const controller = new AbortController();
  // What interrupts it between the lines is caught, too.
  const stubborn = `
import contextlib
print('on', flush=True)
while True:
    with contextlib.suppress(BaseException):
        while True:
            with contextlib.suppress(BaseException):
                while True: pass`;
  const { signal } = controller;
  const onStdout = () => controller.abort(new Error("stop"));
  await assert.rejects(session.run(stubborn, { signal, onStdout }), /stop/);
  await assert.rejects(until(session), isolet.SessionClosedError);
});

/** Waits until as many runs wait for their turn. */
async function untilWaiting({ address }: NodeProcess, count: number): Promise<void> {
  const end = performance.now() + SECONDS * 1000;
  while (performance.now() < end) {
    const metrics = await (await fetch(`${address}/metrics`)).text();
    if (metrics.includes(`\nisolet_runs_waiting ${count}\n`)) return;
  }
  assert.fail(`there are never ${count} waiting runs`);
}

/** Waits until a session runs no code. */
async function until(session: Session): Promise<void> {
  const deadline = performance.now() + SECONDS * 1000;
  for (;;) {
    try {
      await session.run("0");
      return;
    } catch (error) {
      if (!(error instanceof isolet.BusyError) || performance.now() > deadline) throw error;
    }
  }
}

test("an interrupt ends a run", async () => {
  await using session = await client.session();
  const run = await session.run("print('on', flush=True)\nimport time\ntime.sleep(1000)", {
    onStdout: () => void session.interrupt(),
  });
  assert.equal(run.status, "interrupted");
});

test("a session that has ended says so", async () => {
  const session = await client.session();
  const limits = { runTime: 0.2, grace: 0.2 };
  const other = await client.session({ limits, checkpoint: false });
  await session.close();
  await session.close();
  await assert.rejects(session.run("1"), isolet.SessionClosedError);
  const stubborn = `
while True:
    try:
        while True: pass
    except BaseException: pass`;
  assert.equal((await other.run(stubborn)).sessionAlive, false);
  const uses = [() => other.run("1"), () => other.get("x"), () => other.files.get("x")];
  for (const use of uses) {
    await assert.rejects(use, (error: Error) => {
      assert.ok(error instanceof isolet.SessionClosedError);
      assert.match(error.message, /make a new one: `client.session\(\)`/);
      return true;
    });
  }
  await other.close();
});

test("a policy is the ceiling's business", async () => {
  await assert.rejects(client.session({ mounts: { "/data": "/" } }), isolet.ConfigError);
  await assert.rejects(client.run("1", { packages: ["numpy"] }), /numpy/);
  await assert.rejects(client.session({ nothing: 1 } as never), /a policy has no key `nothing`/);
  await using session = await client.session({ limits: { sourceBytes: 10 } });
  await assert.rejects(session.run("1 + 1 + 1 + 1"), isolet.LimitError);
});

test("another client attaches with the token, or with the key", async () => {
  const hash = (key: string) => createHash("sha256").update(key).digest("hex");
  const file = path.join(scratch, "node.toml");
  await writeFile(file, ["a", "b"].map((name) =>
    `[tenants.${name}]\nkeys = ["sha256:${hash(`key of ${name}`)}"]\n`
  ).join(""));
  await using keyed = await NodeProcess.start(["--config", file]);
  const mine = new Client(keyed.address, { key: "key of a" });
  await assert.rejects(new Client(keyed.address).session(), isolet.ConfigError);
  await assert.rejects(new Client(keyed.address, { key: "none" }).session(), isolet.ConfigError);
  await using session = await mine.session({ inputs: { x: 1 }, tools: { ten: () => 10 } });
  const tools = { ten: () => 11 };
  const token = session.token ?? "";
  const shared = await new Client(keyed.address).attach(session.id, { token, tools });
  assert.deepEqual([await shared.eval("x + ten()"), shared.token], [12, token]);
  const again = await mine.attach(session.id);
  assert.equal(await again.get("x"), 1);
  const theirs = new Client(keyed.address, { key: "key of b" });
  await assert.rejects(theirs.attach(session.id), isolet.SessionClosedError);
});

test("a full node has the next one take the session, and waiting helps", async () => {
  await using one = await NodeProcess.start(["--max-sessions", "1"]);
  await using other = await NodeProcess.start(["--max-sessions", "1"]);
  const both = new Client([one.address, other.address]);
  const [first, second] = [await both.session(), await both.session()];
  assert.deepEqual([first.address, second.address], [one.address, other.address]);
  await assert.rejects(both.session(), isolet.LimitError);
  await assert.rejects(both.run("1"), isolet.LimitError);
  const aborted = both.run("1", { wait: SECONDS, signal: AbortSignal.abort(new Error("no")) });
  await assert.rejects(aborted, /no/);
  const controller = new AbortController();
  const given = both.run("1", { wait: SECONDS, signal: controller.signal });
  controller.abort(new Error("later"));
  await assert.rejects(given, /later/);
  const waiting = both.session({ wait: SECONDS });
  await second.close();
  assert.equal((await waiting).address, other.address);
});

test("a node that is gone has the next one take the session", async () => {
  await using gone = await NodeProcess.start();
  await using other = await NodeProcess.start();
  const both = new Client([gone.address, other.address]);
  const lost = await both.session();
  assert.equal(lost.address, gone.address);
  const running = lost.run("print('on', flush=True)\nwhile True: pass", {
    onStdout: () => void gone.kill(),
  });
  await assert.rejects(running, isolet.ServerDiedError);
  await assert.rejects(lost.run("1"), isolet.ServerDiedError);
  await lost.close();
  await using session = await both.session();
  assert.equal(session.address, other.address);
  assert.equal((await both.run("2")).value, 2);
  await assert.rejects(new Client(gone.address).session(), /cannot be reached/);
});

test("nothing is sent to a node that has ended, which would get lost", async () => {
  await using gone = await NodeProcess.start();
  await using other = await NodeProcess.start();
  const both = new Client([gone.address, other.address]);
  assert.equal((await both.run("1")).value, 1);
  gone.killNow();
  assert.equal((await both.run("2")).value, 2);
});

test("a node that does not greet is given up", async () => {
  const mute = net.createServer();
  await new Promise<void>((resolve) => mute.listen(0, "127.0.0.1", resolve));
  try {
    const { port } = mute.address() as AddressInfo;
    const both = new Client([`https://127.0.0.1:${port}`, node.address]);
    assert.equal((await both.run("1")).value, 1);
    const begun = performance.now();
    assert.equal((await both.run("2")).value, 2);
    assert.ok(performance.now() - begun < 4000, "it is then tried after all others");
  } finally {
    mute.close();
  }
});

test("sessions are spread over all nodes", async () => {
  await using one = await NodeProcess.start();
  await using other = await NodeProcess.start();
  const spread = new Client([one.address, other.address], { spread: true });
  const sessions: Session[] = [];
  for (let n = 0; n < 4; n += 1) sessions.push(await spread.session());
  const places = sessions.map(({ address }) => address);
  assert.deepEqual(places, [one.address, other.address, one.address, other.address]);
});

test("a node that is started anew does not know the sessions of before", async () => {
  const socket = `unix:${path.join(scratch, "anew.sock")}`;
  const local = new Client(socket);
  const before = await NodeProcess.start([], socket);
  const old = await local.session().finally(() => before.kill());
  await using _again = await NodeProcess.start([], socket);
  await using session = await local.session();
  await assert.rejects(old.run("x"), isolet.SessionClosedError);
  assert.equal(await session.eval("1"), 1);
});

test("what is no address is refused", () => {
  for (const address of ["", "127.0.0.1:8080", "ftp://x", "unix:", "http://", "http://x:y"]) {
    assert.throws(() => new Client(address), /is no address of a node/, address);
  }
});

test("an answer that no node gives is told of", async () => {
  const answers: http.RequestListener[] = [
    (_, response) => response.writeHead(502).end("<html>"),
    (_, response) => response.writeHead(418).end("null"),
    (_, response) => response.end("{"),
    (_, response) => {
      response.writeHead(200, { "content-length": "100" }).write("{", () => response.destroy());
    },
    (_, response) => response.writeHead(200, { "content-length": String(2 ** 31) }).write("{"),
  ];
  const server = http.createServer((request, response) => answers.shift()?.(request, response));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  try {
    const { port } = server.address() as AddressInfo;
    const odd = new Client(`http://127.0.0.1:${port}/prefix/`);
    await assert.rejects(odd.run("1"), /status 502 is none of a node: "<html>"/);
    await assert.rejects(odd.run("1"), /status 418 is none of a node/);
    await assert.rejects(odd.run("1"), isolet.ProtocolError);
    await assert.rejects(odd.run("1"), isolet.ServerDiedError);
    await assert.rejects(odd.run("1"), /longer than 1073741824 bytes/);
    odd.close();
  } finally {
    server.closeAllConnections();
    server.close();
  }
});

test("a program ends when it has nothing more to do, also with an open session", () => {
  const index = new URL("../src/node.js", import.meta.url).href;
  const code = `import { Client } from ${JSON.stringify(index)};
    const session = await new Client(${JSON.stringify(node.address)}).session();
    console.log(await session.eval("6 * 7", { onStdout() {} }));`;
  const begun = performance.now();
  const ended = spawnSync(process.execPath, ["--input-type=module", "--eval", code], {
    encoding: "utf8",
    timeout: SECONDS * 1000,
  });
  assert.deepEqual([ended.stdout, ended.stderr, ended.status], ["42\n", "", 0]);
  assert.ok(performance.now() - begun < 10_000, "no idle connection is waited for");
});
