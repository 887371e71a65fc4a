// `npx isolet`: the command of the package is that of the binary.

import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { test } from "node:test";

const COMMAND = fileURLToPath(new URL("../src/command.js", import.meta.url));

test("streams, arguments and the exit status are those of the binary", () => {
  const code = "import sys; print(input()); sys.exit(7)";
  const ran = spawnSync(process.execPath, [COMMAND, "run", "-c", code], { input: "said\n", encoding: "utf8" });
  assert.deepEqual([ran.status, ran.stdout, ran.stderr], [7, "said\n", ""]);
});

test("a signal to the command ends the binary", async () => {
  const code = "print('begun', flush=True)\nwhile True: pass";
  const command = spawn(process.execPath, [COMMAND, "run", "-c", code], { stdio: ["ignore", "pipe", "ignore"] });
  await once(command.stdout, "data");
  command.kill("SIGTERM");
  const closed = once(command.stdout, "close");
  const [status] = await once(command, "exit");
  assert.equal(status, 143);
  // The binary had the other end.
  await closed;
});

test("a script of the same name on PATH is not taken for the binary", () => {
  const directory = mkdtempSync(path.join(tmpdir(), "isolet-"));
  try {
    writeFileSync(path.join(directory, "isolet"), `#!/bin/sh\nexec "${process.execPath}" "${COMMAND}" "$@"\n`, {
      mode: 0o755,
    });
    const env = { ...process.env, PATH: directory, ISOLET_BIN: "" };
    const ran = spawnSync(process.execPath, [COMMAND, "--version"], { env, encoding: "utf8" });
    assert.deepEqual([ran.status, ran.stdout], [2, ""]);
    assert.match(ran.stderr, /^error: the program `isolet` is missing; .* set `ISOLET_BIN`\)\n$/);
  } finally {
    rmSync(directory, { recursive: true });
  }
});
