// Calls of tools by a run on a node.

import { AsyncResource } from "node:async_hooks";

import { ConfigError, IsoletError } from "./errors.js";
import { encodeJson, jsonOf } from "./json.js";
import { small } from "./node_http.js";
import { serve, type Tool } from "./tools.js";

/** The calls of a run. Each is served in the context in which the run was begun. */
export class Calls {
  readonly #tools: ReadonlyMap<string, Tool>;
  readonly #answer: (call: number, body: string, signal: AbortSignal) => Promise<unknown>;
  readonly #context = new AsyncResource("isolet.node.Session.run");
  readonly #underWay = new Map<number, AbortController>();

  /** `answer` sends what a call has come to. */
  constructor(
    tools: ReadonlyMap<string, Tool>,
    answer: (call: number, body: string, signal: AbortSignal) => Promise<unknown>,
  ) {
    this.#tools = tools;
    this.#answer = answer;
  }

  start(call: number, name: string, args: Record<string, unknown>): void {
    this.#context.runInAsyncScope(() => void this.#serve(call, name, args));
  }

  /** Nobody waits for this call any more. */
  cancel(call: number): void {
    this.#underWay.get(call)?.abort();
  }

  cancelAll(): void {
    for (const controller of this.#underWay.values()) controller.abort();
  }

  async #serve(call: number, name: string, args: Record<string, unknown>): Promise<void> {
    const controller = new AbortController();
    const { signal } = controller;
    this.#underWay.set(call, controller);
    const outcome = await serve(this.#tools, name, args, { callId: call, signal }, answerOf);
    try {
      if (signal.aborted) return;
      await this.#answer(call, "value" in outcome ? outcome.value : failed(outcome.raised), signal);
    } catch (error) {
      // If the run has ended, or the node, the run's own answer says so.
      if (!(error instanceof IsoletError) && !signal.aborted) throw error;
    } finally {
      this.#underWay.delete(call);
    }
  }
}

function answerOf(value: unknown, name: string): string {
  return small(jsonOf({ value: encodeJson(value, name) }));
}

function failed([type, text, bases]: [string, string, readonly string[]]): string {
  return encodeJson({ error: { type, message: text.toWellFormed(), bases } }, "error");
}

/** How far the events of a run are known: bytes of output, displays, and the last call. */
export type Counts = readonly [output: number, displays: number, call: number];

/**
 * Reads a cursor.
 *
 * @throws {ConfigError} it is none.
 */
export function counts(cursor: string): Counts {
  const found = /^(\d+)-(\d+)-(\d+)$/.exec(cursor);
  if (!found) {
    const shown = JSON.stringify(cursor);
    throw new ConfigError(`\`cursor\` is ${shown}, and has to be that of a session`);
  }
  return [Number(found[1]), Number(found[2]), Number(found[3])];
}
