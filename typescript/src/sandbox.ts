// A policy, of which sessions are made.

import path from "node:path";

import type { Argument, Connection } from "./connection.js";
import type { Execution } from "./execution.js";
import { type Compiled, compile, type Policy } from "./policy.js";
import { Server, shared } from "./server.js";
import {
  type Journal,
  journalShape,
  journalToWire,
  type ReplayOptions,
  replayToWire,
} from "./journal.js";
import type { RunOptions } from "./options.js";
import { Session, type SessionState } from "./session.js";
import { checked, checkedObject, type Shapes, text, variables, wrong } from "./shapes.js";
import { encode, type Value } from "./wire.js";

/** The options of `Sandbox`: a policy, and where its sessions run. */
export interface SandboxOptions extends Policy {
  /** The server; one for the whole program by default. */
  server?: Server;
}

/** The options of `Sandbox.session`. */
export interface SessionOptions {
  /** Its variables. */
  inputs?: Readonly<Record<string, Value>>;
  /** The file that it is recorded to from its beginning, which must not exist. */
  journal?: Journal | string;
}

const SESSION: Shapes<SessionOptions> = { inputs: variables, journal: journalShape };

/** A sandbox as a server has it. */
interface Registration {
  readonly connection: Connection;
  readonly number: number;
  readonly made: Promise<unknown>;
}

const dropped = new FinalizationRegistry<Registration>(({ connection, number }) => {
  connection.setAudit(number, undefined);
  connection.tell("drop", number);
});

/**
 * What guests may do. Sessions are made of it, each with an interpreter of its own.
 *
 * ```ts
 * const sandbox = new Sandbox({ tools: { search }, limits: { runTime: 5 } });
 * await using session = await sandbox.session();
 * const { value } = await session.run("search('cats')");
 * ```
 */
export class Sandbox {
  readonly #compiled: Compiled;
  readonly #policy: Buffer;
  readonly #server: Server;
  #registration: Registration | undefined;

  /**
   * Everything is denied unless `options` allows it.
   *
   * @throws {ConfigError} an option is unknown or invalid. What only the server can tell, the first
   * session throws.
   */
  constructor(options: SandboxOptions = {}) {
    const { server, ...policy } = checkedObject(options, "`Sandbox`");
    if (server != null && !(server instanceof Server)) throw wrong("server", server, "a Server");
    this.#server = server ?? shared;
    this.#compiled = compile(policy);
    this.#policy = encode(this.#compiled.wire, "policy");
  }

  /** Opens a session. */
  async session(options: SessionOptions = {}): Promise<Session> {
    checked(options, SESSION, "`session`");
    const { inputs, journal } = options;
    const args = [encode(inputs, "inputs")];
    if (journal != null) args.push(journalToWire(journal));
    return await this.#open("session", ...args);
  }

  /** Opens a session from a file that `Session.save` has written. */
  async restore(file: string): Promise<Session> {
    text(file, "file");
    return await this.#open("restore", path.resolve(file));
  }

  /**
   * Opens the session of a journal, as it was when its last run began, and goes on recording it.
   * `Session.goOn` has the run go on. The sandbox has to have the same tools, mounts and variables.
   */
  async resume(journal: Journal | string): Promise<Session> {
    return await this.#open("resume", journalToWire(journal));
  }

  /**
   * Opens the session of a journal to look back at it: each `Session.goOn` runs the next run. It
   * reaches nothing of the host, and the journal stays as it is.
   */
  async replay(file: string, options: ReplayOptions = {}): Promise<Session> {
    text(file, "file");
    return await this.#open("replay", path.resolve(file), replayToWire(options));
  }

  /** Runs code in a fresh session, which ends with it, however it ends. */
  async run(code: string, options: RunOptions = {}): Promise<Execution> {
    await using session = await this.session();
    return await session.run(code, options);
  }

  async #open(operation: string, ...args: Argument[]): Promise<Session> {
    const { connection, number: sandbox, made } = this.#registered();
    const number = connection.number();
    const state: SessionState = { connection, number, tools: new Map(this.#compiled.tools) };
    connection.setTools(number, state.tools);
    const opened = connection.request(operation, number, sandbox, ...args);
    // Why there is no sandbox says more than that a session has none.
    opened.catch(() => {});
    try {
      await made;
      await opened;
    } catch (error) {
      connection.setTools(number, undefined);
      throw error;
    }
    return new Session(state, this);
  }

  #registered(): Registration {
    const connection = this.#server.connection();
    if (this.#registration?.connection === connection) return this.#registration;
    const number = connection.number();
    connection.setAudit(number, this.#compiled.onAudit);
    const made = connection.request("sandbox", number, this.#policy);
    this.#registration = { connection, number, made };
    dropped.register(this, this.#registration);
    made.catch(() => {
      // The next session tries again.
      this.#registration = undefined;
    });
    return this.#registration;
  }
}
