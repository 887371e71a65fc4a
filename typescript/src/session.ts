// One interpreter, which keeps its variables from run to run.

import path from "node:path";

import type { Argument, Connection, Listener } from "./connection.js";
import { IsoletError, ProtocolError, SessionClosedError } from "./errors.js";
import { type Display, Execution, type Output, valueOf, type WireExecution } from "./execution.js";
import { Files } from "./files.js";
import { type Journal, journalToWire, type StoppedAt } from "./journal.js";
import {
  argumentsOf,
  checkCallbacks,
  hasCallbacks,
  optionsToWire,
  type OutputCallbacks,
  type RunOptions,
  type StreamOptions,
  tell,
} from "./options.js";
import { type Submit, submission } from "./policy.js";
import { checkedObject, list, text, variables } from "./shapes.js";
import { Stream } from "./stream.js";
import { collect, type Tool, type Tools } from "./tools.js";
import { encode, type Value } from "./wire.js";

/** A session as its server has it. */
export interface SessionState {
  readonly connection: Connection;
  readonly number: number;
  readonly tools: Map<string, Tool>;
}

/** A variable of a session. */
export interface Variable {
  readonly name: string;
  /** The name of its class. */
  readonly type: string;
  /** Its `repr`, cut after 500 characters. */
  readonly repr: string;
}

/** A package that a session has loaded. */
export interface Package {
  /** Its name, as the index has it. */
  readonly name: string;
  /** Its version, such as `2.1.0`. */
  readonly version: string;
}

const dropped = new FinalizationRegistry<SessionState>(({ connection, number }) => {
  connection.setTools(number, undefined);
  connection.tell("close", number);
});

/**
 * One interpreter. `Sandbox.session` opens it. It runs one code at a time. `await using` closes it;
 * one that is dropped without is closed some time later.
 */
export class Session implements AsyncDisposable {
  readonly #state: SessionState;
  /** A sandbox stays on the server while it has sessions. */
  readonly #sandbox: object;
  #isClosed = false;
  #isDead = false;

  /** Use `Sandbox.session`. */
  constructor(state: SessionState, sandbox: object) {
    this.#state = state;
    this.#sandbox = sandbox;
    dropped.register(this, state, state);
  }

  /** The number of the session on its server, as `session` of audit events. */
  get id(): number {
    return this.#state.number;
  }

  /** Whether the session can run code, as far as is known. */
  get alive(): boolean {
    return !this.#isClosed && !this.#isDead && this.#state.connection.ended === undefined;
  }

  /**
   * Runs code, and returns what it did. An exception of the code, a timeout or another end is part
   * of the result: `throwForError` throws it.
   *
   * @param code Python. `await` is allowed, and the value of a last expression is the result's.
   * @throws {TransferError} an input cannot cross.
   * @throws {BusyError} the session runs code already.
   * @throws {SessionClosedError} the session has ended.
   * @throws {LimitError} the code is too long, or too many sessions are open.
   * @throws {ServerDiedError} the server has ended, and the session with it.
   */
  async run(code: string, options: RunOptions = {}): Promise<Execution> {
    text(code, "code");
    const wire = optionsToWire(options, "run");
    const { listener, check } = this.#listener(options);
    const args = [code, ...argumentsOf(wire, options.inputs, listener !== undefined)];
    const execution = await this.#ran("run", args, listener, options.signal);
    check();
    return execution;
  }

  /**
   * Runs code and returns its value, or throws why there is none.
   *
   * @throws {GuestError} the code failed. `GuestTimeoutError`: it did not end in time.
   * @throws {TransferError} the value cannot cross.
   */
  async eval(code: string, options: RunOptions = {}): Promise<unknown> {
    return valueOf(await this.run(code, options));
  }

  /**
   * Runs code, and yields what it writes and displays as it comes; last, the `Execution`.
   *
   * The run starts with the iteration. A guest that writes faster than its output is taken has to
   * wait, unless this program waits for the server in another way. If the iteration is left early,
   * the run is interrupted.
   *
   * ```ts
   * for await (const item of session.stream(code)) {
   *   if (item.kind === "output") process.stdout.write(item.text);
   * }
   * ```
   */
  async *stream(
    code: string,
    options: StreamOptions = {},
  ): AsyncGenerator<Output | Display | Execution, void, undefined> {
    text(code, "code");
    const args = [code, ...argumentsOf(optionsToWire(options, "stream"), options.inputs, true)];
    const stream = new Stream(this.#state.connection);
    const ended = this.#ran("run", args, stream, options.signal);
    ended.then(stream.end, stream.end);
    let isOver = false;
    try {
      for await (const item of stream) yield item;
      isOver = true;
      yield await ended;
    } finally {
      stream.close();
      if (!isOver) {
        await this.#ask("cancel").catch(() => {});
        await ended.catch(() => {});
      }
    }
  }

  /**
   * Runs a script in the session's shell, as bash would. `exitCode` of the result is the script's
   * status. The shell is code of the guest: it starts no process, and works on the guest's files.
   */
  async sh(script: string, options: RunOptions = {}): Promise<Execution> {
    return await this.run(script, { ...checkedObject(options, "`sh`"), syntax: "shell" });
  }

  /** Returns a variable as plain data; `undefined` if there is none. Works while code waits. */
  async get(name: string): Promise<unknown> {
    text(name, "name");
    const found = (await this.#ask("get", name)) as unknown[];
    return found.length > 0 ? found[0] : undefined;
  }

  /** Sets variables: all of them, or none. */
  async set(values: Readonly<Record<string, Value>>): Promise<void> {
    variables(values, "values");
    await this.#ask("set", encode(values, "values"));
  }

  /** Deletes a variable. Returns whether there was one. */
  async delete(name: string): Promise<boolean> {
    text(name, "name");
    return (await this.#ask("delete", name)) as boolean;
  }

  /** Returns the variables of the guest, each with its type and `repr`. */
  async variables(): Promise<Variable[]> {
    return (await this.#ask("variables")) as Variable[];
  }

  /** The files that the guest sees. */
  get files(): Files {
    return new Files((operation, ...args) => this.#ask(operation, ...args));
  }

  /** Gives the guest further tools, or replaces some. */
  async register(tools: Tools): Promise<void> {
    const made = collect(tools);
    const wire = encode([...made.values()].map((tool) => tool.wire), "tools");
    for (const [name, tool] of made) this.#state.tools.set(name, tool);
    await this.#ask("register", wire);
  }

  /** Gives the guest `SUBMIT(...)`, or changes it. */
  async setSubmit(submit: Submit): Promise<void> {
    await this.#ask("submit", encode(submission(submit), "submit"));
  }

  /** Loads packages, such as `rich>=13`. Returns those that were not loaded before. */
  async loadPackages(...requirements: string[]): Promise<Package[]> {
    list(text)(requirements, "requirements");
    return (await this.#ask("load_packages", encode(requirements, "requirements"))) as Package[];
  }

  /** Raises `KeyboardInterrupt` in the code that runs, if any does. */
  async interrupt(): Promise<void> {
    await this.#ask("interrupt");
  }

  /** Starts a fresh interpreter under the same policy, without variables and files. */
  async reset(): Promise<void> {
    await this.#ask("reset");
    this.#isDead = false;
  }

  /** Keeps the state now, to go on from it after a run that has ended the interpreter. */
  async checkpoint(): Promise<void> {
    await this.#ask("checkpoint");
  }

  /**
   * Returns a second session that has all that this one has: variables, modules, files. From then
   * on the two are apart. The policy has to say `forkable`.
   */
  async fork(): Promise<Session> {
    const { connection, tools } = this.#state;
    const state = { connection, number: connection.number(), tools: new Map(tools) };
    connection.setTools(state.number, state.tools);
    try {
      await this.#ask("fork", state.number);
    } catch (error) {
      connection.setTools(state.number, undefined);
      throw error;
    }
    return new Session(state, this.#sandbox);
  }

  /**
   * Saves the session to a file, from which `Sandbox.restore` makes one that goes on, also in
   * another process. The file has all that the guest has, and only its owner may read it.
   */
  async save(file: string): Promise<void> {
    text(file, "file");
    await this.#ask("save", path.resolve(file));
  }

  /**
   * Records the session from here on: everything that the host tells it. If this program ends,
   * `Sandbox.resume` has the session go on in another one.
   *
   * @param journal the file, which must not exist.
   */
  async record(journal: Journal | string): Promise<void> {
    await this.#ask("record", journalToWire(journal));
  }

  /** Records the session no longer. Its journal can still be resumed, from here. */
  async endRecording(): Promise<void> {
    await this.#ask("end_recording");
  }

  /**
   * Goes on with the last run of the journal that `Sandbox.resume` has opened, or runs the next run
   * of `Sandbox.replay`. Returns what the whole run did; `null` if there is none.
   */
  async goOn(callbacks: OutputCallbacks = {}): Promise<Execution | null> {
    checkCallbacks(callbacks);
    const { listener, check } = this.#listener(callbacks);
    const args = listener === undefined ? [] : [encode({ stream: true }, "options")];
    const execution = await this.#run("go_on", args, listener, undefined);
    check();
    return execution;
  }

  /**
   * Binds the local variables of the function in which `Sandbox.replay` has stopped a run. Returns
   * where that is; `null` if no run was stopped.
   */
  async bindLocals(): Promise<StoppedAt | null> {
    return (await this.#ask("bind_locals")) as StoppedAt | null;
  }

  /** Ends the session for good, and a run in it. Does nothing if it has ended. */
  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    const { connection, number } = this.#state;
    dropped.unregister(this.#state);
    try {
      await connection.request("close", number);
    } catch (error) {
      // It has ended, or its server has.
      if (!(error instanceof IsoletError)) throw error;
    } finally {
      connection.setTools(number, undefined);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  async #ask(operation: string, ...args: Argument[]): Promise<unknown> {
    this.#check();
    return await this.#state.connection.request(operation, this.#state.number, ...args);
  }

  /** Passes on to callbacks what a run writes. What one throws ends the run, and `check` throws. */
  #listener(callbacks: OutputCallbacks): {
    listener: Listener | undefined;
    check: () => void;
  } {
    if (!hasCallbacks(callbacks)) return { listener: undefined, check: () => {} };
    let thrown: { error: unknown } | undefined;
    const add = (item: Output | Display) => {
      try {
        tell(item, callbacks);
      } catch (error) {
        if (!thrown) this.#ask("cancel").catch(() => {});
        thrown ??= { error };
      }
    };
    const check = () => {
      if (thrown) throw thrown.error;
    };
    return { listener: { add, isStream: false }, check };
  }

  async #ran(
    operation: "run",
    args: readonly Argument[],
    listener: Listener | undefined,
    signal: AbortSignal | undefined,
  ): Promise<Execution> {
    const execution = await this.#run(operation, args, listener, signal);
    if (execution === null) throw new ProtocolError("the server has answered a run with nothing");
    return execution;
  }

  async #run(
    operation: "run" | "go_on",
    args: readonly Argument[],
    listener: Listener | undefined,
    signal: AbortSignal | undefined,
  ): Promise<Execution | null> {
    this.#check();
    signal?.throwIfAborted();
    const { connection, number } = this.#state;
    const abort = () => void this.#ask("cancel").catch(() => {});
    signal?.addEventListener("abort", abort, { once: true });
    try {
      const answer = await connection.run(listener, operation, number, ...args);
      const execution = answer === null ? null : new Execution(answer as WireExecution);
      if (execution?.sessionAlive === false) this.#isDead = true;
      signal?.throwIfAborted();
      return execution;
    } finally {
      signal?.removeEventListener("abort", abort);
    }
  }

  #check(): void {
    if (this.#isClosed) {
      throw new SessionClosedError("the session was closed", "make a new one: `sandbox.session()`");
    }
  }
}

