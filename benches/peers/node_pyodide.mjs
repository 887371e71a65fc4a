// Pyodide in Node, as it comes from npm: one process, an interpreter for each session. `command`
// makes it a command.
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

// Where it is installed is the caller's to say: this file is not beside it.
const require = createRequire(`${process.env.ISOLET_BENCH_NODE}/`);
const { loadPyodide, version } = await import(pathToFileURL(require.resolve("pyodide/pyodide.mjs")));

const COMPUTE = readFileSync(new URL("../compute.py", import.meta.url), "utf8");
const MIB = 1 << 20;
const TEXT = "All work and no play. ".repeat(50_000).slice(0, MIB);
const OUTPUT = "for _ in range(10_485): print('x' * 99)";
const OUTPUT_BYTES = 1_048_500;
const TOOL_CALLS = 200;
const IDLE_SESSIONS = 5;

async function open() {
  const session = await loadPyodide();
  session.globals.set("f", (x) => x);
  return session;
}

let warmed;
async function warm() {
  if (!warmed) {
    warmed = await open();
    warmed.runPython(`out = ('All work and no play. ' * 50_000)[:${MIB}]`);
  }
  return warmed;
}

function expect(condition, result) {
  if (!condition) throw new Error(`unexpected result: ${String(result).slice(0, 200)}`);
}

async function timed(work, expected) {
  const start = process.hrtime.bigint();
  const result = await work();
  const took = Number(process.hrtime.bigint() - start);
  expect(expected(result), result);
  return took;
}

/** Bytes that a process and all that it has started take, what is shared counted in proportion. */
function pss(pid) {
  if (!existsSync(`/proc/${pid}`)) return 0;
  const rollup = readFileSync(`/proc/${pid}/smaps_rollup`, "utf8");
  let total = Number(/^Pss:\s+(\d+) kB$/m.exec(rollup)[1]) * 1024;
  for (const task of readdirSync(`/proc/${pid}/task`)) {
    const path = `/proc/${pid}/task/${task}/children`;
    const children = existsSync(path) ? readFileSync(path, "utf8").split(" ").filter(Boolean) : [];
    for (const child of children) total += pss(child);
  }
  return total;
}

const SCENARIOS = {
  session: async () => {
    const took = await timed(async () => (await open()).runPython("40+2"), (result) => result === 42);
    // What it has left is not to be collected beside the next scenario.
    globalThis.gc?.();
    return took;
  },
  run: async () => {
    const session = await warm();
    return timed(() => session.runPython("40+2"), (result) => result === 42);
  },
  compute: async () => {
    const session = await warm();
    return timed(() => session.runPython(COMPUTE), (result) => result === 19920111);
  },
  tool: async () => {
    const session = await warm();
    const code = `for i in range(${TOOL_CALLS}): f(i)`;
    return Math.round((await timed(() => session.runPython(code), () => true)) / TOOL_CALLS);
  },
  value_in: async () => {
    const session = await warm();
    const give = () => {
      session.globals.set("given", TEXT);
      return session.runPython("len(given)");
    };
    return timed(give, (result) => result === MIB);
  },
  value_out: async () => {
    const session = await warm();
    return timed(() => session.runPython("out"), (result) => result.length === MIB);
  },
  output: async () => {
    const session = await warm();
    const print = () => {
      const lines = [];
      session.setStdout({ batched: (line) => lines.push(line) });
      session.runPython(OUTPUT);
      return `${lines.join("\n")}\n`;
    };
    return timed(print, (result) => result.length === OUTPUT_BYTES);
  },
  memory: async () => {
    await warm();
    globalThis.gc?.();
    const before = pss(process.pid);
    const sessions = [];
    for (let count = 0; count < IDLE_SESSIONS; count++) {
      const session = await open();
      expect(session.runPython("40+2") === 42, session);
      sessions.push(session);
    }
    globalThis.gc?.();
    return Math.round((pss(process.pid) - before) / sessions.length);
  },
};

if (process.argv[2] === "command") {
  const pyodide = await loadPyodide();
  pyodide.runPython("print(40+2)");
} else {
  const say = (answer) => process.stdout.write(`${JSON.stringify(answer)}\n`);
  say(`Pyodide ${version} in Node ${process.versions.node}`);
  for await (const line of createInterface({ input: process.stdin })) {
    const [scenario, count] = line.split(" ");
    try {
      if (!(scenario in SCENARIOS)) {
        say({ skip: "not a scenario of this peer" });
        continue;
      }
      const times = [];
      for (let time = 0; time < Number(count); time++) times.push(await SCENARIOS[scenario]());
      say(times);
    } catch (error) {
      say({ error: String(error).slice(0, 1000) });
    }
  }
}
