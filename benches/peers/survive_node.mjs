// Pyodide in Node, as a subject of `cargo xtask survival`: an interpreter in a thread for each
// session. At a run's limit it is interrupted as Pyodide documents it, and after a grace its thread
// is terminated.
import { createRequire } from "node:module";
import { createInterface } from "node:readline";
import { setTimeout as after } from "node:timers/promises";
import { pathToFileURL } from "node:url";
import { isMainThread, parentPort, Worker, workerData } from "node:worker_threads";

// Where it is installed is the caller's to say: this file is not beside it.
const require = createRequire(`${process.env.ISOLET_BENCH_NODE}/`);
const module = pathToFileURL(require.resolve("pyodide/pyodide.mjs"));
const { loadPyodide, version } = await import(module);

/** The pause before a program, in milliseconds. `benches/survival.rs` has the same. */
const PAUSE = 300;

/** How long an interrupted run may take to end, in milliseconds. */
const GRACE = 300;

/** How much of what is printed is kept, in characters. */
const KEPT = 2000;

/** Pyodide's number for an interrupt, as SIGINT's. */
const INTERRUPT = 2;

async function serveInThread() {
  const pyodide = await loadPyodide();
  const interrupt = new Uint8Array(workerData);
  pyodide.setInterruptBuffer(interrupt);
  let printed = "";
  const print = (bytes) => {
    printed = (printed + new TextDecoder().decode(bytes)).slice(-KEPT);
    return bytes.length;
  };
  pyodide.setStdout({ write: print });
  pyodide.setStderr({ write: print });
  parentPort.on("message", (code) => {
    printed = "";
    try {
      // As a task, an interrupted program would end the thread. No program awaits at its top level.
      const value = pyodide.runPython(code);
      parentPort.postMessage({ told: `${printed}${value ?? ""}` });
    } catch (error) {
      parentPort.postMessage({ told: `${printed}${error}`.slice(-KEPT) });
    }
  });
  parentPort.postMessage({ told: "ready" });
}

class Session {
  #interrupt = new Uint8Array(new SharedArrayBuffer(1));
  #worker = new Worker(new URL(import.meta.url), { workerData: this.#interrupt.buffer });
  #ended = new Promise((resolve) => {
    this.#worker.on("error", (error) => resolve({ told: `the thread failed: ${error}` }));
    this.#worker.on("exit", (code) => resolve({ told: `the thread ended with status ${code}` }));
  });

  /** Waits for the thread's next message, or its end. */
  answer() {
    const message = new Promise((resolve) => this.#worker.once("message", resolve));
    return Promise.race([message, this.#ended]);
  }

  async run(code, seconds) {
    this.#interrupt[0] = 0;
    this.#worker.postMessage(code);
    const answer = this.answer();
    const late = new AbortController();
    const stop = async () => {
      await after(seconds * 1000, undefined, late);
      this.#interrupt[0] = INTERRUPT;
      await after(GRACE, undefined, late);
      await this.#worker.terminate();
      return { told: "the thread was terminated" };
    };
    const stopped = stop().catch(() => answer);
    const { told } = await Promise.race([answer, stopped]);
    late.abort();
    return told;
  }

  close() {
    return this.#worker.terminate();
  }
}

async function survive({ code, packages, seconds }, say) {
  if (packages.length > 0) {
    say({ skip: `has no ${packages.join(" and no ")}` });
    return;
  }
  const session = new Session();
  await session.answer();
  await session.run("kept = 41", seconds);
  await after(PAUSE);
  say({ opened: true });
  const start = performance.now();
  const told = await session.run(code, seconds);
  say({ seconds: (performance.now() - start) / 1000, told });
  say({ kept: (await session.run("kept + 1", seconds)) === "42" });
  await session.close();
}

if (isMainThread) {
  const say = (answer) => process.stdout.write(`${JSON.stringify(answer)}\n`);
  say(`Pyodide ${version} in Node ${process.versions.node}`);
  for await (const line of createInterface({ input: process.stdin })) {
    await survive(JSON.parse(line), say);
  }
} else {
  await serveInThread();
}
