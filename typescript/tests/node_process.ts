// Starts nodes, `isolet serve --listen`, for the tests that speak to them.

import { type ChildProcessByStdio, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import type { Readable } from "node:stream";

import { findBinary } from "../src/binary.js";

/** A node, which ends with `await using` at the latest. */
export class NodeProcess implements AsyncDisposable {
  /** Where it listens, as `Client` takes it. */
  readonly address: string;
  readonly #child: ChildProcessByStdio<null, null, Readable>;
  readonly #exited: Promise<unknown>;

  private constructor(
    address: string,
    child: ChildProcessByStdio<null, null, Readable>,
    exited: Promise<unknown>,
  ) {
    this.address = address;
    this.#child = child;
    this.#exited = exited;
  }

  /** Starts one; by default at a port of its own. */
  static async start(args: string[] = [], listen = "127.0.0.1:0"): Promise<NodeProcess> {
    const all = ["serve", "--listen", listen, "--die-with-parent", ...args];
    const child = spawn(findBinary(), all, { stdio: ["ignore", "ignore", "pipe"] });
    const exited = once(child, "exit");
    try {
      const lines = createInterface(child.stderr);
      const place = await new Promise<string>((resolve, reject) => {
        lines.on("line", (line) => {
          const said = line.split(" listening at ")[1];
          if (said !== undefined) resolve(said.trim());
        });
        lines.on("close", () => reject(new Error("the node has ended before it listened")));
        child.on("error", reject);
      });
      return new NodeProcess(place.startsWith("/") ? `unix:${place}` : place, child, exited);
    } catch (error) {
      child.kill("SIGKILL");
      throw error;
    }
  }

  /** Ends it before this program does anything else, such as noticing that. */
  killNow(): void {
    const { pid } = this.#child;
    // Its sockets are closed when the last of its threads is gone, which the first may precede.
    const gone = `grep -q '^State:.Z' /proc/${pid}/status && grep -q '^Threads:.1$' /proc/${pid}/status`;
    const script = `kill -9 ${pid}; until ${gone}; do :; done`;
    const { status } = spawnSync("sh", ["-c", script], { timeout: 30_000 });
    if (status !== 0) throw new Error("the node cannot be killed");
  }

  /** Ends it at once. */
  async kill(): Promise<void> {
    this.#child.kill("SIGKILL");
    await this.#exited;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill();
  }
}
