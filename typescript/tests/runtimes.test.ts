// The package in Bun and in Deno: a program of each with tools, streams, aborts and forks.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { after, test } from "node:test";
import { fileURLToPath } from "node:url";

import { NodeProcess } from "./node_process.js";

const PLATFORM = `${process.platform}-${process.arch}`;
// Their packages' own programs need a script of the installation.
const PACKAGES = fileURLToPath(new URL("../../node_modules/", import.meta.url));
const ALLOWED = ["run", "env", "read", "sys", "net"].map((right) => `--allow-${right}`);
const RUNTIMES = [
  ["Bun", path.join(PACKAGES, `@oven/bun-${PLATFORM}/bin/bun`), "run"],
  ["Deno", path.join(PACKAGES, `@deno/${PLATFORM}-glibc/deno`), "run", ...ALLOWED],
] as const;

const SOURCE = new URL("../src/", import.meta.url).href;
const PROGRAM = `
import * as isolet from "${SOURCE}index.js";
import { Client } from "${SOURCE}node.js";
import { execFileSync } from "node:child_process";

const said = [];
const tools = { square: async (n) => n * n };

async function used(session) {
  said.push((await session.run("sum(map(square, range(4)))")).value);
  said.push((await session.run("b'x' * (1 << 20)")).value.length);
  let text = "";
  for await (const item of session.stream("for n in range(3): print(n)")) {
    if (item.kind === "output") text += item.text;
  }
  said.push(text);
  const controller = new AbortController();
  const onStdout = () => controller.abort(new Error("stop"));
  const run = session.run("print('on', flush=True)\\nwhile True: pass", {
    onStdout,
    signal: controller.signal,
  });
  await run.catch((error) => said.push(error.message));
  said.push(await session.eval("'lives on'"));
}

// Deno lets no program read \`/proc\`.
function kill() {
  const children = "$(cat /proc/$PPID/task/*/children)";
  const script = \`for child in \${children}; do [ $child = $$ ] || kill -9 $child; done\`;
  execFileSync("sh", ["-c", script]);
}

const server = new isolet.Server();
const sandbox = new isolet.Sandbox({ tools, forkable: 1, server });
const session = await sandbox.session();
await used(session);
const fork = await session.fork();
said.push(await fork.eval("40 + 2"));
const endless = session.run("print('on', flush=True)\\nwhile True: pass", {
  onStdout: kill,
});
await endless.catch((error) => said.push(error instanceof isolet.ServerDiedError));

const remote = await new Client(process.env.NODE_ADDRESS).session({ tools });
await used(remote);
await remote.close();
console.log(JSON.stringify(said));
await sandbox.session(); // left open: the program ends all the same
`;

const USED = [14, 1 << 20, "0\n1\n2\n", "stop", "lives on"];

const scratch = mkdtempSync(path.join(os.tmpdir(), "isolet-runtimes-"));
after(() => rmSync(scratch, { recursive: true }));

for (const [name, program, ...args] of RUNTIMES) {
  test(`a program of ${name} runs code, over a pipe and on a node`, async () => {
    await using node = await NodeProcess.start();
    const file = path.join(scratch, `${name}.mjs`);
    writeFileSync(file, PROGRAM);
    const { stdout, stderr, status } = spawnSync(program, [...args, file], {
      encoding: "utf8",
      env: { ...process.env, NODE_ADDRESS: node.address, NO_COLOR: "1" },
      timeout: 60_000,
    });
    assert.deepEqual([stderr, status], ["", 0]);
    assert.deepEqual(JSON.parse(stdout), [...USED, 42, true, ...USED]);
  });
}
