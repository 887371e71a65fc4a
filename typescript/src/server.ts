// The process that sandboxes and sessions are in.

import process from "node:process";

import { findBinary } from "./binary.js";
import { Connection } from "./connection.js";
import { byKey, checked, secret, type Shapes, text, whole } from "./shapes.js";

/** How a server is started. */
export interface ServerOptions {
  /** The `isolet` binary, instead of the one that is found. */
  binary?: string;
  /** The directory with the files of the interpreter. */
  assets?: string;
  /** The most sessions at once. */
  maxSessions?: number;
  /** Environment variables of the server, besides those of this program. */
  env?: Readonly<Record<string, string>>;
}

const SERVER: Shapes<ServerOptions> = {
  binary: text,
  assets: text,
  maxSessions: whole(1),
  env: byKey(secret, "texts"),
};

/**
 * A server, which is started with its first session, and again with the next one after it has
 * ended. Sandboxes share one if they name no other.
 */
export class Server implements AsyncDisposable {
  readonly #options: ServerOptions;
  #connection: Connection | undefined;

  /** @throws {ConfigError} an option is unknown, or not what it has to be. */
  constructor(options: ServerOptions = {}) {
    this.#options = Object.fromEntries(checked(options, SERVER, "`Server`"));
  }

  /** Returns the connection to the process, which is started if there is none. */
  connection(): Connection {
    if (this.#connection?.ended === undefined && this.#connection) return this.#connection;
    const { binary, assets, maxSessions, env } = this.#options;
    const args: string[] = [];
    if (assets !== undefined) args.push("--assets", assets);
    if (maxSessions !== undefined) args.push("--max-sessions", String(maxSessions));
    const own = env && { ...process.env, ...env };
    this.#connection = new Connection(findBinary(binary), args, own);
    return this.#connection;
  }

  /** Ends the process and all of its sessions. */
  async close(): Promise<void> {
    const connection = this.#connection;
    this.#connection = undefined;
    await connection?.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}

/** The server of sandboxes that name no other. */
export const shared = new Server();
