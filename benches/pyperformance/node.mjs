// Runs code in Pyodide in Node for `measure.py`: node.mjs INSTALLED HOST_DIR=GUEST_DIR...
//
// The protocol is that of `hosts.py`.
import { createRequire } from "node:module";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

const [installed, ...pairs] = process.argv.slice(2);

// Where it is installed is the caller's to say: this file is not beside it.
const require = createRequire(`${installed}/`);
const module = pathToFileURL(require.resolve("pyodide/pyodide.mjs"));
const { loadPyodide, version } = await import(module);

const LONGEST_MESSAGE = 300;

async function open() {
  const pyodide = await loadPyodide();
  for (const pair of pairs) {
    const [host, guest] = pair.split("=");
    pyodide.mountNodeFS(guest, host);
  }
  return pyodide;
}

function run(session, code) {
  const lines = [];
  session.setStdout({ batched: (line) => lines.push(line) });
  session.runPython(code);
  return lines.join("\n");
}

const say = (answer) => process.stdout.write(`${JSON.stringify(answer)}\n`);
say(`Pyodide ${version} in Node ${process.versions.node}`);
let session;
for await (const line of createInterface({ input: process.stdin })) {
  const { code, fresh } = JSON.parse(line);
  try {
    if (fresh) {
      session = undefined;
      // What an ended interpreter has left is not to be collected beside a measurement.
      globalThis.gc?.();
      session = await open();
    }
    say({ printed: run(session, code) });
  } catch (error) {
    const message = String(error).trim().split("\n").at(-1);
    say({ error: message.slice(0, LONGEST_MESSAGE) });
  }
}
