// Runs code of a model in a session, one after the other, and says what the model sees of it.

import { AsyncLocalStorage } from "node:async_hooks";

import { BusyError, ConfigError } from "../errors.js";
import type { Execution } from "../execution.js";
import type { Session } from "../session.js";
import type { Tool } from "../tools.js";

/** What a model sees of its code. */
export interface ModelOptions {
  /** The most seconds of a call, without those in tools; the limit `runTime` by default. */
  readonly timeout?: number;
  /** The most characters of a result, 20,000 by default. The middle of longer ones is left out. */
  readonly maxChars?: number;
  /** The most pictures of a result that the model gets, 4 by default. */
  readonly maxPictures?: number;
}

/** The settings of a tool that runs Python in a session. */
export interface PythonToolOptions extends ModelOptions {
  /** What the model reads about the tool. By default it says what the tool does. */
  readonly description?: string;
}

/** A picture that the code displayed. */
export interface Picture {
  /** Such as `image/png`. */
  readonly mediaType: string;
  /** Its bytes in base64. */
  readonly data: string;
}

/** What a run gives a model, as plain data. */
export interface PythonResult {
  /** The output and the value, or the traceback. */
  readonly text: string;
  /** Whether the code failed. */
  readonly isError: boolean;
  readonly pictures: readonly Picture[];
}

/** What a tool that runs Python says about itself. */
export const DESCRIPTION = `\
Run Python code in a sandbox, and get what it printed and the value of its last expression.
Variables and imports are kept from call to call.`;

/** The arguments of such a tool. */
export const CODE_SCHEMA: {
  type: "object";
  properties: { code: { type: "string"; description: string } };
  required: "code"[];
  additionalProperties: false;
} = {
  type: "object",
  properties: { code: { type: "string", description: "The Python code." } },
  required: ["code"],
  additionalProperties: false,
};

const MAX_CHARS = 20_000;
const MAX_PICTURES = 4;
/** The pictures that models take. SVG is a program of the guest's. */
const PICTURES = ["image/png", "image/jpeg", "image/webp", "image/gif"];
const RESTARTED =
  "[the session has ended and a new one was started: variables and imports are lost]";

/** When the last run of a session has ended: runs of several tools take turns. */
const turns = new WeakMap<Session, Promise<unknown>>();

/** A run whose tools may call for further ones. */
interface Turn {
  readonly session: Session;
  readonly outer: Turn | undefined;
  isOver: boolean;
}

const current = new AsyncLocalStorage<Turn>();

/**
 * Does work with a session after all that was given here before has ended.
 *
 * @throws {BusyError} it comes from a tool that code of the session has called, and would wait for
 * itself.
 */
async function inTurn<Result>(session: Session, work: () => Promise<Result>): Promise<Result> {
  const outer = current.getStore();
  for (let turn = outer; turn !== undefined; turn = turn.outer) {
    if (turn.session !== session || turn.isOver) continue;
    throw new BusyError("the code of a session cannot run further code in it", "open another one");
  }
  const turn: Turn = { session, outer, isOver: false };
  const before = turns.get(session) ?? Promise.resolve();
  const done = before.then(() => current.run(turn, work)).finally(() => {
    turn.isOver = true;
  });
  turns.set(session, done.catch(() => {}));
  return await done;
}

/**
 * Runs code, and returns what a model sees of it. If the session had ended, it starts anew.
 *
 * @param tools functions that the code can call, besides those that the session has.
 * @throws what `Session.run` throws: the reason of the signal, or that the host has failed.
 */
export function runForModel(
  session: Session,
  code: string,
  options: ModelOptions,
  signal: AbortSignal | undefined,
  tools: readonly Tool[] = [],
): Promise<PythonResult> {
  return inTurn(session, async () => {
    signal?.throwIfAborted();
    const isRestarted = !session.alive;
    if (isRestarted) await session.reset();
    if (tools.length > 0) await session.register(tools);
    const { timeout } = options;
    const execution = await session.run(code, {
      ...(timeout !== undefined && { timeout }),
      ...(signal && { signal }),
    });
    const result = resultOf(execution, options);
    return isRestarted ? { ...result, text: `${RESTARTED}\n${result.text}` } : result;
  });
}

/** Returns what a model sees of a run. */
export function resultOf(execution: Execution, options: ModelOptions): PythonResult {
  const { maxChars = MAX_CHARS, maxPictures = MAX_PICTURES } = options;
  const pictures: Picture[] = [];
  const others = new Set<string>();
  let leftOut = 0;
  for (const { data } of execution.displays) {
    const found = PICTURES.find((type) => data[type] instanceof Uint8Array);
    if (found === undefined) for (const type of Object.keys(data)) others.add(type);
    else if (pictures.length >= maxPictures) leftOut += 1;
    else pictures.push({ mediaType: found, data: base64(data[found] as Uint8Array) });
  }
  const lines = [execution.text];
  if (others.size > 0) lines.push(`[displayed: ${[...others].sort().join(", ")}]`);
  const shown = lines.filter((line) => line !== "").join("\n");
  const nothing = pictures.length > 0 ? "[a picture]" : "[no output]";
  const parts = [shortened(shown || nothing, maxChars)];
  if (leftOut > 0) parts.push(`[pictures left out: ${leftOut}]`);
  const lost = lossOf(execution);
  if (lost !== undefined) parts.push(`[${lost}]`);
  return { text: parts.join("\n"), isError: !execution.ok, pictures };
}

/**
 * Returns the code of a model's call.
 *
 * @throws {ConfigError} there is none.
 */
export function codeOf(input: unknown): string {
  const code = (input as { code?: unknown } | null | undefined)?.code;
  if (typeof code === "string") return code;
  throw new ConfigError("the tool was called without `code`, a text");
}

function base64(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString("base64");
}

function shortened(text: string, maxChars: number): string {
  if (text.length <= maxChars) return text;
  const half = Math.floor(maxChars / 2);
  const end = text.length - half;
  const note = `\n[${end - half} characters left out]\n`;
  // A cut may be within a surrogate pair.
  return text.slice(0, half).toWellFormed() + note + text.slice(end).toWellFormed();
}

function lossOf({ sessionAlive, restored }: Execution): string | undefined {
  if (!sessionAlive) return "the session has ended: variables and imports are lost";
  if (restored === null) return undefined;
  if (restored.lostRuns <= 1) {
    return "The session goes on as it was before this run: what the run changed is lost.";
  }
  return (
    `The session goes on as it was before its last ${restored.lostRuns} runs: what they changed ` +
    "is lost."
  );
}
