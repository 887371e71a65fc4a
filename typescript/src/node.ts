/**
 * Sessions on nodes, `isolet serve --listen`, over HTTP.
 *
 * ```ts
 * import { Client } from "isolet/node";
 *
 * const client = new Client("http://10.0.0.5:8080", { key });
 * await using session = await client.session({ tools: { search } });
 * console.log((await session.run("search('cats')")).value);
 * ```
 *
 * @module
 */

import { type IsoletError, ServerDiedError, StartError } from "./errors.js";
import { Execution, type WireExecution } from "./execution.js";
import { decodeJson, encodeJson, jsonOf } from "./json.js";
import {
  type Answer,
  succeeded,
  deadlineOf,
  Node,
  refusal,
  small,
  UnreachableError,
  waits,
} from "./node_http.js";
import { AGAIN, bearer, jobOf, type Made, NodeSession, pathOf } from "./node_session.js";
import { hasCallbacks, type RunOptions, splitOptions, type StreamOptions } from "./options.js";
import { compile, type Policy } from "./policy.js";
import {
  checked,
  checkedObject,
  flag,
  list,
  seconds,
  secret,
  type Shapes,
  text,
  unchecked,
  variables,
} from "./shapes.js";
import { collect, type Tools } from "./tools.js";
import type { Value } from "./wire.js";

export { NodeFiles as Files } from "./node_files.js";
export { NodeSession as Session, type ReattachOptions } from "./node_session.js";

/** The options of `Client`. */
export interface ClientOptions {
  /** The key, if the nodes have tenants. */
  key?: string;
  /** Whether sessions go to all nodes in turn. By default, to the first one that has room. */
  spread?: boolean;
}

/** How long to wait for a session. */
export interface Waiting {
  /** For how many seconds to wait for room while all nodes are full; by default, not at all. */
  wait?: number;
}

/** The options of `Client.session`, and what guests may do, within what the nodes allow. */
export interface SessionOptions extends Policy, Waiting {
  /** Variables by name. */
  inputs?: Readonly<Record<string, Value>>;
  /** The most seconds that it lives; by default, and at most, the node's `ttl`. */
  ttl?: number;
  /** Whether the node goes on with it, and with its run, when it is started again after its end.
   * See `Client.attach`. */
  durable?: boolean;
}

/** The options of `Client.attach`. */
export interface AttachOptions {
  /** The session's `token`; by default, the client's key. */
  token?: string;
  /** The tools of its policy, which serve calls from here on. */
  tools?: Tools;
  /** For how many seconds to wait while its node cannot be reached or restores it. */
  wait?: number;
}

const CLIENT: Shapes<ClientOptions> = { key: secret, spread: flag };
const WAITING: Shapes<Waiting> = { wait: seconds };
const SESSION: Shapes<Omit<SessionOptions, keyof Policy>> = {
  ...WAITING,
  inputs: variables,
  ttl: seconds,
  durable: flag,
};
// `collect` checks tools.
const ATTACH: Shapes<AttachOptions> = { token: secret, tools: unchecked, wait: seconds };

/** The statuses by which a node says that it has no room for a session. */
const ELSEWHERE: ReadonlySet<number> = new Set([429, AGAIN]);

/** Opens sessions on one node or several. */
export class Client implements Disposable {
  readonly #nodes: readonly Node[];
  readonly #headers: Readonly<Record<string, string>>;
  readonly #spread: boolean;
  #turn = 0;

  /**
   * @param addresses where the nodes listen, the nearest first: `http://HOST:PORT`, `https://HOST`,
   * `unix:PATH`. A session goes to the first node that has room.
   * @throws {ConfigError} an address is none.
   */
  constructor(addresses: string | readonly string[], options: ClientOptions = {}) {
    checked(options, CLIENT, "`Client`");
    const all = typeof addresses === "string" ? [addresses] : addresses;
    list(text, "addresses")(all, "addresses");
    this.#nodes = all.map((address) => new Node(address));
    this.#headers = bearer(options.key);
    this.#spread = options.spread ?? false;
  }

  /**
   * Opens a session.
   *
   * @throws {LimitError} all nodes are full, or have as many sessions of the key as it may have.
   * @throws {ServerDiedError} no node can be reached.
   * @throws {StartError} the nodes end, or could not start it.
   * @throws {ConfigError} the policy is invalid, or allows more than the nodes do.
   * @throws {TransferError} an input cannot cross.
   */
  async session(options: SessionOptions = {}): Promise<NodeSession> {
    return await this.#session(options);
  }

  /**
   * Returns a session that is open already, such as a durable one of another program.
   *
   * @throws {SessionClosedError} there is no such session, or it has ended.
   * @throws {ServerDiedError} no node can be reached.
   */
  async attach(id: string, options: AttachOptions = {}): Promise<NodeSession> {
    text(id, "id");
    checked(options, ATTACH, "`attach`");
    const { token, tools = [], wait = 0 } = options;
    const served = collect(tools);
    const headers = token === undefined ? this.#headers : bearer(token);
    const path = pathOf(id);
    const deadline = deadlineOf(wait);
    for (;;) {
      let failed: IsoletError | undefined;
      for (const node of this.#order()) {
        let answer: Answer;
        try {
          answer = await node.ask("GET", path, { headers });
        } catch (error) {
          if (!(error instanceof ServerDiedError)) throw error;
          failed = error;
          continue;
        }
        const { status, data } = answer;
        if (status < 300) {
          const made = { token, ...(decodeJson(data) as Made) } as Made;
          return new NodeSession(node, made, served, { headers });
        }
        const found = refusal(status, data);
        // That of the node that may have it yet says more than that there is none.
        if (failed === undefined || status === AGAIN) failed = found;
        if (status !== 404 && status !== AGAIN) throw found;
      }
      if (!(await waits(deadline))) throw failed ?? noNode();
    }
  }

  /**
   * Runs code in a fresh session, which ends with it. The options are those of both.
   *
   * @throws {IsoletError} what `session` and `Session.run` throw.
   */
  async run(code: string, options: Policy & RunOptions & Waiting = {}): Promise<Execution> {
    const [ofRun, { wait = 0, ...policy }] = splitOptions(options);
    checked({ wait }, WAITING, "`run`");
    const job = jobOf(code, ofRun, "run");
    const { signal } = ofRun;
    const compiled = compile(policy);
    if (compiled.tools.size > 0 || hasCallbacks(ofRun)) {
      await using session = await this.#session({ wait, ...policy }, signal);
      return await session.run(code, ofRun);
    }
    const policyJson = encodeJson(compiled.wire, "policy");
    const body = jsonOf({ ...job, policy: policyJson });
    const sent = { wait, signal, isRun: true };
    const [, data] = await this.#anywhere("/v1/run", body, sent);
    return new Execution(decodeJson(data) as WireExecution);
  }

  /**
   * Starts a durable run in a session of its own, and returns that session.
   *
   * `Session.reattach` yields what the run does and serves its calls, also of a client that has
   * attached to the session later. The session ends with the run, whose result stays until the
   * node's `ttl` is over or the session is closed.
   *
   * @throws {IsoletError} what `session` and `Session.run` throw.
   */
  async startRun(
    code: string,
    options: Policy & StreamOptions & Waiting = {},
  ): Promise<NodeSession> {
    const [ofRun, { wait = 0, ...policy }] = splitOptions(options);
    checked({ wait }, WAITING, "`startRun`");
    const { tools, wire } = compile(policy);
    const job = jobOf(code, ofRun, "stream");
    const body = jsonOf({ ...job, policy: encodeJson(wire, "policy"), durable: "true" });
    const [node, data] = await this.#anywhere("/v1/run", body, { wait, signal: ofRun.signal });
    const begun = decodeJson(data) as { session: string; token: string; run: number };
    const made = { id: begun.session, token: begun.token, durable: true };
    return new NodeSession(node, made, tools, { lastRun: begun.run });
  }

  /** Closes connections that are idle. Sessions stay, and the client can be used again. */
  close(): void {
    for (const node of this.#nodes) node.close();
  }

  [Symbol.dispose](): void {
    this.close();
  }

  async #session(options: SessionOptions, signal?: AbortSignal): Promise<NodeSession> {
    const { inputs, ttl, wait = 0, durable, ...policy } = checkedObject(options, "`session`");
    checked({ inputs, ttl, wait, durable }, SESSION, "`session`");
    const { tools, wire } = compile(policy);
    const body = jsonOf({
      policy: encodeJson(wire, "policy"),
      inputs: inputs && encodeJson(inputs, "inputs"),
      ttl: ttl === undefined ? undefined : encodeJson(ttl, "ttl"),
      durable: durable ? "true" : undefined,
    });
    const sent = { wait, signal, isRepeatable: true };
    const [node, data] = await this.#anywhere("/v1/sessions", body, sent);
    return new NodeSession(node, decodeJson(data) as Made, tools);
  }

  /** Returns the nodes in the order in which to try them. */
  #order(): Node[] {
    const first = this.#spread ? this.#turn++ % Math.max(this.#nodes.length, 1) : 0;
    const nodes = [...this.#nodes.slice(first), ...this.#nodes.slice(0, first)];
    const now = performance.now();
    const isDown = (node: Node) => Number(node.downUntil > now);
    return nodes.sort((one, other) => isDown(one) - isDown(other));
  }

  /** Asks one node after the other, until one has room. */
  async #anywhere(
    path: string,
    json: string,
    how: {
      wait: number;
      signal: AbortSignal | undefined;
      isRun?: boolean;
      isRepeatable?: boolean;
    },
  ): Promise<[Node, Buffer]> {
    const { wait, signal, isRun = false, isRepeatable = false } = how;
    const sent = { headers: this.#headers, body: small(json), signal, isRun };
    const deadline = deadlineOf(wait);
    for (;;) {
      let refused: IsoletError | undefined;
      let lost: IsoletError | undefined;
      for (const node of this.#order()) {
        let answer: Answer;
        try {
          answer = await node.ask("POST", path, sent);
        } catch (error) {
          // One that was reached may have done it.
          const mayRepeat = isRepeatable || error instanceof UnreachableError;
          if (!(error instanceof ServerDiedError) || !mayRepeat) throw error;
          lost = error;
          continue;
        }
        if (!ELSEWHERE.has(answer.status)) return [node, succeeded(answer)];
        refused = refusal(answer.status, answer.data);
      }
      if (!(await waits(deadline, signal))) throw refused ?? lost ?? noNode();
    }
  }
}

function noNode(): StartError {
  return new StartError("there is no node", "start one, or wait");
}
