// What calls of this package take. `client.py` measures the same with the Python package:
// node benches/client.mjs
// It needs `npm run build`, and `ISOLET_BIN` if `isolet` is not on `PATH`.

import { Sandbox } from "../dist/index.js";

const ROUNDS = 15;

/** The median of rounds, in milliseconds per operation. */
async function measure(title, operations, work) {
  const times = [];
  for (let round = 0; round < ROUNDS; round += 1) {
    const start = performance.now();
    await work(operations);
    times.push((performance.now() - start) / operations);
  }
  times.sort((a, b) => a - b);
  console.log(`${title}: ${times[ROUNDS >> 1].toFixed(3)} ms`);
}

const sandbox = new Sandbox({ tools: { echo: (value) => value } });
const session = await sandbox.session();
await session.run("def calls(n):\n    for i in range(n): echo(i)");
const text = "x".repeat(1 << 20);

await measure("a run", 300, async (n) => {
  for (let i = 0; i < n; i += 1) await session.run("40 + 2");
});
await measure("a tool call", 1000, (n) => session.run(`calls(${n})`));
await measure("1 MiB to the guest", 10, async (n) => {
  for (let i = 0; i < n; i += 1) await session.run("None", { inputs: { text } });
});
await measure("1 MiB from the guest", 10, async (n) => {
  for (let i = 0; i < n; i += 1) await session.get("text");
});
await measure("a session and a run", 20, async (n) => {
  for (let i = 0; i < n; i += 1) {
    const each = await sandbox.session();
    await each.run("40 + 2");
    await each.close();
  }
});
