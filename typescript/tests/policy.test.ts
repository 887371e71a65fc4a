// Policies: what they allow, what they refuse, and what is told of.

import assert from "node:assert/strict";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { test } from "node:test";

import * as isolet from "../src/index.js";

test("an option that does not exist is refused by name", () => {
  const wrong = { allow_net: [] } as never;
  assert.throws(() => new isolet.Sandbox(wrong), /a policy has no key `allow_net`; it has tools/);
  const limits = { runtime: 1 } as never;
  assert.throws(() => new isolet.Sandbox({ limits }), /`limits` has no key `runtime`/);
  assert.throws(() => new isolet.Sandbox({ allowNet: "a" as never }), /has to be an array/);
});

test("an option of a run that does not exist is refused by name", async () => {
  await using session = await new isolet.Sandbox().session();
  await assert.rejects(session.run("1", { argv0: 1 } as never), isolet.ConfigError);
  const iterated = session.stream("1", { onStdout: () => {} } as never).next();
  await assert.rejects(iterated, /`stream` has no key `onStdout`/);
});

test("what only the server can tell is thrown by each session of the sandbox", async () => {
  const sandbox = new isolet.Sandbox({ allowNet: ["not a rule!"] });
  for (let n = 0; n < 2; n += 1) await assert.rejects(sandbox.session(), isolet.ConfigError);
});

test("the guest sees what it was given, and is told of what it was not", async () => {
  const events: isolet.AuditEvent[] = [];
  const sandbox = new isolet.Sandbox({
    env: { GIVEN: "yes" },
    onAudit: (event) => events.push(event),
    limits: { runTime: 20, stdoutBytes: 1000 },
  });
  await using session = await sandbox.session();
  assert.deepEqual(await session.eval("import os\n[os.environ['GIVEN'], os.environ.get('HOME')]"), [
    "yes",
    "/home/user",
  ]);
  const denied = await session.run(
    "import urllib.request\nurllib.request.urlopen('http://denied.example')",
  );
  assert.equal(denied.ok, false);
  const [event] = events.filter((each) => each["host"] === "denied.example");
  assert.deepEqual([event?.session, event?.["allowed"]], [session.id, false]);
  const long = await session.run("print('x' * 5000)");
  assert.ok(long.stdout.length < 1200 && (long.truncated?.stdoutBytes ?? 0) > 4000);
});

test("a secret is sent to its hosts, and the guest does not see it", async (context) => {
  const seen: [string | undefined, string][] = [];
  const server = createServer((request, response) => {
    request.setEncoding("utf8");
    let body = "";
    request.on("data", (piece: string) => (body += piece));
    request.on("end", () => {
      seen.push([request.headers.authorization, body]);
      response.end(`${String(request.headers.authorization)} ${body}`);
    });
  });
  context.after(() => {
    server.close();
    server.closeAllConnections();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  const hosts = [`http://127.0.0.1:${String(port)}`];
  const sandbox = new isolet.Sandbox({
    allowNet: [`127.0.0.1:${String(port)}`],
    secrets: {
      KEY: { value: "sk-canary-key", hosts },
      FORM: { value: "sk-canary-form", hosts, inBodies: true },
    },
  });
  await using session = await sandbox.session();
  const answer = await session.eval(
    `import os, urllib.request as u
key, form = os.environ["KEY"], os.environ["FORM"]
r = u.Request(url, f"k={key}&f={form}".encode(), {"Authorization": "Bearer " + key})
u.urlopen(r).read().decode()`,
    { inputs: { url: `${hosts[0] ?? ""}/` } },
  );
  const [authorization, body] = seen[0] ?? [];
  assert.equal(authorization, "Bearer sk-canary-key");
  assert.match(body ?? "", /^k=ISOLET_SECRET_KEY_\w+&f=sk-canary-form$/);
  assert.match(String(answer), /^Bearer ISOLET_SECRET_KEY_\w+ k=ISOLET_SECRET_KEY_/);
  assert.doesNotMatch(String(answer), /canary/);
});

test("a secret that cannot be kept is refused by its name, without its value", async () => {
  const of = (secret: unknown) => new isolet.Sandbox({ secrets: { KEY: secret as isolet.Secret } });
  const hosts = ["a.example"];
  await assert.rejects(of({ value: "canary", hosts }).session(), (error: Error) => {
    assert.match(error.message, /the secret `KEY` has 6 bytes, it needs 8 to 4096/);
    return error instanceof isolet.ConfigError && !error.message.includes("canary");
  });
  assert.throws(() => of({ value: "canary-canary", host: "a" }), /`secrets\["KEY"\]` has no key `host`/);
});

test("a deterministic session has its chance and its clock from the seed", async () => {
  const startTime = new Date("2030-01-01T00:00:00Z");
  const sandbox = new isolet.Sandbox({ seed: 2n ** 63n, startTime });
  const code = "import random, time\n[random.random(), int(time.time())]";
  const drawn = await Promise.all([1, 2].map(async () => {
    await using session = await sandbox.session();
    return await session.eval(code);
  }));
  assert.deepEqual(drawn[0], drawn[1]);
  assert.equal((drawn[0] as number[])[1], startTime.getTime() / 1000);
});

test("a run is submitted by the function of the policy", async () => {
  const fields = { answer: { type: "string" }, more: true } as const;
  const sandbox = new isolet.Sandbox({ submit: { fields } });
  const run = await sandbox.run("SUBMIT(answer='a', more=[1])\nprint('not reached')");
  assert.deepEqual([run.status, run.value], ["submitted", { answer: "a", more: [1] }]);
  assert.equal((await sandbox.run("SUBMIT(answer=1, more=2)")).error?.type, "TypeError");
});
