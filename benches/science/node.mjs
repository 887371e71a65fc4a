// Pyodide in Node, with wheels from files: node.mjs INSTALLED run|serve CODE WHEEL...
//
// `run` runs the code in an interpreter. `serve` does for each line that it reads, keeps all
// interpreters, and answers with the milliseconds.
import { createRequire } from "node:module";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

const [installed, mode, code, ...wheels] = process.argv.slice(2);

// Where it is installed is the caller's to say: this file is not beside it.
const require = createRequire(`${installed}/`);
const { loadPyodide } = await import(pathToFileURL(require.resolve("pyodide/pyodide.mjs")));

async function open() {
  // matplotlib would draw into a page.
  const pyodide = await loadPyodide({ env: { HOME: "/home/pyodide", MPLBACKEND: "agg" } });
  await pyodide.loadPackage(wheels, { messageCallback: () => {} });
  pyodide.runPython(code);
  return pyodide;
}

if (mode === "run") {
  await open();
} else {
  const kept = [];
  for await (const _ of createInterface({ input: process.stdin })) {
    const start = performance.now();
    kept.push(await open());
    const taken = performance.now() - start;
    globalThis.gc?.();
    process.stdout.write(`${taken}\n`);
  }
}
