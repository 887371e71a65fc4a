// A session on a node.

import type { IncomingMessage } from "node:http";

import {
  ConfigError,
  ProtocolError,
  ServerDiedError,
  SessionClosedError,
  StartError,
} from "./errors.js";
import {
  type Display,
  display,
  Execution,
  type Output,
  valueOf,
  type WireDisplay,
  type WireExecution,
} from "./execution.js";
import { decodeJson, encodeJson, jsonOf } from "./json.js";
import { Calls, type Counts, counts } from "./node_calls.js";
import { NodeFiles } from "./node_files.js";
import {
  type Answer,
  succeeded,
  deadlineOf,
  errorOf,
  type Node,
  type Problem,
  refusal,
  small,
  waits,
} from "./node_http.js";
import {
  hasCallbacks,
  optionsToWire,
  type RunOptions,
  type StreamOptions,
  tell,
} from "./options.js";
import type { Variable } from "./session.js";
import {
  checked,
  checkedObject,
  seconds,
  type Shapes,
  signal as signalShape,
  text,
  variables,
  whole,
} from "./shapes.js";
import type { Tool } from "./tools.js";
import { refused, type Value } from "./wire.js";

/** The status of a node that ends, or that was started again and restores the session. */
export const AGAIN = 503;
/** For how long the answer to a call waits for a node that restores the session, in seconds. */
const ANSWERING = 600;
/** How long a run that is interrupted may take to end before its connection is closed. */
const STOPPING = 5000;
/** How long a run that is not wanted any more may take to begin. Later, it waits for its turn. */
const BEGINNING = 500;
const EVENTS = "application/x-ndjson";

/** A session as its node describes it. */
export interface Made {
  id: string;
  token?: string;
  durable?: boolean;
}

/** The options of `Session.reattach`. */
export interface ReattachOptions {
  /** For how many seconds to wait while the node cannot be reached or restores the session. */
  wait?: number;
  /** Interrupts the run when it is aborted. What is waited for then throws the signal's reason. */
  signal?: AbortSignal;
}

const REATTACH: Shapes<ReattachOptions> = { wait: seconds, signal: signalShape };

/** What a run yields. */
type Item = Output | Display | Execution;

/** Begins to hear the events of a run. */
type Listening = (signal: AbortSignal) => Promise<IncomingMessage>;

/**
 * A session on a node, which keeps its variables from run to run. `Client.session` opens it. It
 * runs one code at a time. `await using` closes it; one that is dropped without, the node ends when
 * nobody has used it for the node's time `idle`.
 */
export class NodeSession implements AsyncDisposable {
  /** Its id, which names its node. */
  readonly id: string;
  /** The address of its node. */
  readonly address: string;
  /** Its token, with which other clients may use it; `undefined` if it was attached to by a key. */
  readonly token: string | undefined;
  readonly #node: Node;
  readonly #tools: ReadonlyMap<string, Tool>;
  readonly #headers: Readonly<Record<string, string>>;
  readonly #path: string;
  readonly #isDurable: boolean;
  #lastRun: number | undefined;
  #seen: Counts = [0, 0, 0];
  readonly #waiting = new Set<number>();

  /** Use `Client.session`. */
  constructor(
    node: Node,
    made: Made,
    tools: ReadonlyMap<string, Tool>,
    { headers, lastRun }: { headers?: Readonly<Record<string, string>>; lastRun?: number } = {},
  ) {
    this.id = made.id;
    this.address = node.address;
    this.token = made.token;
    this.#node = node;
    this.#tools = tools;
    this.#headers = headers ?? bearer(made.token);
    this.#path = pathOf(made.id);
    this.#isDurable = made.durable ?? false;
    this.#lastRun = lastRun;
  }

  /** The number of the last run of a durable session, as far as this object knows. */
  get lastRun(): number | undefined {
    return this.#lastRun;
  }

  /**
   * What was told of the last run of a durable session: where `reattach` goes on. Calls of tools
   * that are not answered yet are told again.
   */
  get cursor(): string {
    const [output, displays, call] = this.#seen;
    return `${output}-${displays}-${Math.min(call + 1, ...this.#waiting) - 1}`;
  }

  /**
   * Runs code, and returns what it did: as `Session.run` of `isolet`, in its turn on the node.
   *
   * @throws {TransferError} an input cannot cross.
   * @throws {BusyError} the session runs code already.
   * @throws {SessionClosedError} the session has ended. A new one helps.
   * @throws {LimitError} the code is too long, or the run has waited too long for its turn.
   * @throws {ServerDiedError} the node has ended, and the session with it unless it is durable, or
   * cannot be reached.
   */
  async run(code: string, options: RunOptions = {}): Promise<Execution> {
    const job = jsonOf(jobOf(code, options, "run"));
    const { signal } = options;
    // The events of a durable run say how far it is, for another client.
    if (this.#tools.size === 0 && !hasCallbacks(options) && !signal && !this.#isDurable) {
      const answer = await this.#answer("POST", "/runs", small(job), true);
      return new Execution(decodeJson(succeeded(answer)) as WireExecution);
    }
    for await (const item of this.#follow(this.#begin(job), signal, true)) {
      if (item.kind === "execution") return item;
      tell(item, options);
    }
    throw new ProtocolError("the node has ended a run without an execution");
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
   * wait. If the iteration is left early, the run is interrupted, unless the session is durable.
   */
  async *stream(
    code: string,
    options: StreamOptions = {},
  ): AsyncGenerator<Item, void, undefined> {
    const job = jsonOf(jobOf(code, options, "stream"));
    yield* this.#follow(this.#begin(job), options.signal, !this.#isDurable);
  }

  /** Runs a script in the session's shell, as `Session.sh` of `isolet`. */
  async sh(script: string, options: RunOptions = {}): Promise<Execution> {
    return await this.run(script, { ...checkedObject(options, "`sh`"), syntax: "shell" });
  }

  /**
   * Yields what the last run of a durable session does, as `stream`, and serves its calls. The run
   * goes on when the iteration is left, and when its node is killed and started again.
   *
   * @param run its number, `lastRun` by default.
   * @param cursor that of the session object which has read its events, for those after it; by
   * default, this object's.
   * @throws {SessionClosedError} the session has ended, or keeps no run of this number.
   * @throws {ServerDiedError} the node cannot be reached.
   */
  async *reattach(
    run: number | undefined = this.#lastRun,
    cursor?: string,
    options: ReattachOptions = {},
  ): AsyncGenerator<Item, void, undefined> {
    if (run === undefined) {
      throw new ConfigError("`run` is missing: this object has begun no run");
    }
    whole()(run, "run");
    checked(options, REATTACH, "`reattach`");
    const { wait = 0, signal } = options;
    if (cursor !== undefined) this.#seen = counts(cursor);
    else if (run !== this.#lastRun) this.#seen = [0, 0, 0];
    const after = cursor ?? this.cursor;
    this.#waiting.clear();
    const deadline = deadlineOf(wait);
    const listen: Listening = async (ended) => {
      for (;;) {
        try {
          return await this.#listen("GET", `/runs/${run}?after=${after}`, undefined, ended);
        } catch (error) {
          const mayPass = error instanceof ServerDiedError || error instanceof StartError;
          if (!mayPass || !(await waits(deadline, ended))) throw error;
        }
      }
    };
    yield* this.#follow(listen, signal, false);
  }

  /** Returns a variable as plain data; `undefined` if there is none. Works while code waits. */
  async get(name: string): Promise<unknown> {
    const found = await this.#find("GET", variable(name));
    return found && (decodeJson(found) as { value: unknown }).value;
  }

  /** Sets variables, one after the other. */
  async set(values: Readonly<Record<string, Value>>): Promise<void> {
    variables(values, "values");
    const all = Object.entries(values).filter(([, value]) => value !== undefined);
    const bodies = all.map(([name, value]) => {
      const body = jsonOf({ value: encodeJson(value, `values[${JSON.stringify(name)}]`) });
      return [variable(name), small(body)] as const;
    });
    for (const [path, body] of bodies) await this.#ask("PUT", path, body);
  }

  /** Deletes a variable. Returns whether there was one. */
  async delete(name: string): Promise<boolean> {
    return (await this.#find("DELETE", variable(name))) !== undefined;
  }

  /** Returns the variables of the guest, each with its type and `repr`. */
  async variables(): Promise<Variable[]> {
    const found = decodeJson(await this.#ask("GET", "/variables"));
    return (found as { variables: Variable[] }).variables;
  }

  /** The files that the guest sees. */
  get files(): NodeFiles {
    return new NodeFiles(
      (path, body) => this.#ask("PUT", path, body),
      (method, path) => this.#find(method, path),
    );
  }

  /** Raises `KeyboardInterrupt` in the code that runs, if any does. */
  async interrupt(): Promise<void> {
    await this.#ask("POST", "/interrupt");
  }

  /** Starts a fresh interpreter under the same policy, without variables and files. */
  async reset(): Promise<void> {
    await this.#ask("POST", "/reset");
  }

  /** Lets the session live for `ttl` seconds from now on, by default and at most the node's. */
  async renew(ttl?: number): Promise<void> {
    if (ttl !== undefined) seconds(ttl, "ttl");
    await this.#ask("POST", "/renew", ttl === undefined ? "{}" : encodeJson({ ttl }, "ttl"));
  }

  /** Ends the session for good, and a run in it. Does nothing if it has ended. */
  async close(): Promise<void> {
    try {
      await this.#ask("DELETE", "");
    } catch (error) {
      if (!(error instanceof SessionClosedError || error instanceof ServerDiedError)) throw error;
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  async #ask(method: string, path: string, body?: string | Uint8Array): Promise<Buffer> {
    return succeeded(await this.#answer(method, path, body));
  }

  async #answer(
    method: string,
    path: string,
    body?: string | Uint8Array,
    isRun = false,
  ): Promise<Answer> {
    const sent = { headers: this.#headers, body, isRun };
    return await this.#node.ask(method, this.#path + path, sent);
  }

  /** Asks for a variable or a file. Returns `undefined` if there is none. */
  async #find(method: string, path: string): Promise<Buffer | undefined> {
    const answer = await this.#answer(method, path);
    if (answer.status !== 404) return succeeded(answer);
    // Throws if it is the session that there is not.
    await this.#ask("GET", "");
    return undefined;
  }

  /** Answers a call, also of a node that restores the session. */
  async #answerCall(call: number, body: string, signal: AbortSignal): Promise<void> {
    const deadline = deadlineOf(this.#isDurable ? ANSWERING : 0);
    let answer: Answer;
    do {
      answer = await this.#answer("POST", `/calls/${call}`, body);
    } while (answer.status === AGAIN && (await waits(deadline, signal)));
    if (answer.status < 300 || answer.status === 404) this.#waiting.delete(call);
    succeeded(answer);
  }

  /** Starts a run whose events are told. */
  #begin(job: string): Listening {
    const body = small(job);
    return async (signal) => {
      const response = await this.#listen("POST", "/runs", body, signal);
      this.#seen = [0, 0, 0];
      this.#waiting.clear();
      return response;
    };
  }

  /** Asks for the events of a run. */
  async #listen(
    method: string,
    path: string,
    body: string | undefined,
    signal: AbortSignal,
  ): Promise<IncomingMessage> {
    const headers = { ...this.#headers, accept: EVENTS };
    const sent = { headers, body, signal, isRun: true };
    const response = await this.#node.open(method, this.#path + path, sent);
    const { statusCode = 0 } = response;
    if (statusCode !== 200) throw refusal(statusCode, await this.#node.read(response));
    const run = response.headers["isolet-run"];
    this.#lastRun = run === undefined ? undefined : Number(run);
    return response;
  }

  /**
   * Yields what a run does. When `signal` is aborted, it is interrupted; also when the iteration is
   * left and `isInterrupted` says so. It then has some time to end, so that the session is free.
   */
  async *#follow(
    listen: Listening,
    signal: AbortSignal | undefined,
    isInterrupted: boolean,
  ): AsyncGenerator<Item, void, undefined> {
    signal?.throwIfAborted();
    const connection = new AbortController();
    let closing: NodeJS.Timeout | undefined;
    let hasBegun = false;
    const close = () => connection.abort();
    const interrupt = () => {
      clearTimeout(closing);
      closing = setTimeout(close, STOPPING);
      this.interrupt().catch(close);
    };
    const stop = () => {
      if (closing) return;
      if (hasBegun) interrupt();
      else closing = setTimeout(close, BEGINNING);
    };
    const begin: Listening = async (ended) => {
      const response = await listen(ended);
      hasBegun = true;
      if (closing) interrupt();
      return response;
    };
    signal?.addEventListener("abort", stop, { once: true });
    const items = this.#items(begin, connection.signal);
    let isOver = false;
    const fail = (error: unknown) => {
      // There is nothing to interrupt: the session may run another's code.
      isOver = true;
      throw error;
    };
    try {
      for (;;) {
        const next = await items.next().catch(fail);
        isOver = next.done === true || next.value.kind === "execution";
        signal?.throwIfAborted();
        if (next.done) return;
        yield next.value;
        if (isOver) return;
      }
    } catch (error) {
      signal?.throwIfAborted();
      throw error;
    } finally {
      signal?.removeEventListener("abort", stop);
      if (!isOver) {
        if (isInterrupted) stop();
        else if (!closing) connection.abort();
        await drained(items);
      }
      clearTimeout(closing);
    }
  }

  /** Yields what a run tells. Serves its calls of tools. */
  async *#items(listen: Listening, signal: AbortSignal): AsyncGenerator<Item, void, undefined> {
    const answer = (call: number, body: string, ended: AbortSignal) =>
      this.#answerCall(call, body, ended);
    const calls = new Calls(this.#tools, answer);
    const response = await listen(signal);
    let last: { execution?: unknown; problem?: unknown } | undefined;
    try {
      for await (const event of this.#node.events(response)) {
        if (typeof event["cursor"] === "string") this.#seen = counts(event["cursor"]);
        const call = event["call_id"] as number;
        switch (event["type"]) {
          case "tool_call":
            this.#waiting.add(call);
            calls.start(call, String(event["name"]), event["arguments"] as Record<string, unknown>);
            break;
          case "tool_cancelled":
            this.#waiting.delete(call);
            calls.cancel(call);
            break;
          case "dropped":
            break;
          case "display":
            yield display(event["display"] as WireDisplay);
            break;
          case "stdout":
          case "stderr":
            yield { kind: "output", stream: event["type"], text: String(event["text"]) };
            break;
          case "end":
          case "error":
            last = event;
            break;
          default:
            throw new ProtocolError(`the node sent an event of an unknown type`);
        }
        if (last) break;
      }
      if (!last) throw this.#node.lost("the answer has no end");
    } finally {
      calls.cancelAll();
      // What is after the last line is the end of the body.
      if (last) response.resume();
      else response.destroy();
    }
    if (last.problem !== undefined) throw errorOf(last.problem as Problem);
    yield new Execution(last.execution as WireExecution);
  }
}

/** Waits until a run has ended, or its connection is closed. */
async function drained(items: AsyncGenerator<Item, void, undefined>): Promise<void> {
  try {
    while (!(await items.next()).done);
  } catch {
    // Why the iteration was left says more.
  }
}

/** The header that shows a key or a token. */
export function bearer(key: string | undefined): Record<string, string> {
  return key === undefined ? {} : { authorization: `Bearer ${key}` };
}

/** Returns the path of a session on its node. */
export function pathOf(id: string): string {
  return `/v1/sessions/${part(id, "id")}`;
}

function variable(name: string): string {
  return `/variables/${part(name, "name")}`;
}

function part(value: string, name: string): string {
  text(value, name);
  if (!value.isWellFormed()) throw refused([name], "a text that has half of a surrogate pair");
  return encodeURIComponent(value);
}

/**
 * Returns the members of a run as `docs/reference/http-api.md` describes it, as JSON.
 *
 * @throws {ConfigError} an option is unknown.
 * @throws {TransferError} a value cannot cross.
 */
export function jobOf(
  code: string,
  options: RunOptions,
  method: "run" | "stream",
): Record<string, string | undefined> {
  text(code, "code");
  const wire = Object.entries(optionsToWire(options, method));
  const { inputs } = options;
  return {
    ...Object.fromEntries(wire.map(([name, value]) => [name, encodeJson(value, name)])),
    code: encodeJson(code, "code"),
    inputs: inputs && encodeJson(inputs, "inputs"),
  };
}
