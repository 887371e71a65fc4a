// Code of a model that calls tools of its framework as functions.

import { AsyncLocalStorage } from "node:async_hooks";

import { ConfigError } from "../errors.js";
import { Sandbox, type SandboxOptions } from "../sandbox.js";
import type { Session } from "../session.js";
import type { Approve } from "./approvals.js";
import { type Described, hostFunctions } from "./functions.js";
import { type ModelOptions, type PythonResult, runForModel } from "./runs.js";

/** What code may do that calls tools, and what a model sees of it. */
export interface CodeModeOptions extends ModelOptions, Omit<SandboxOptions, "tools"> {
  /**
   * Called for each call that needs approval. The tool is called if it resolves to `true`; else
   * the code gets a `PermissionError`. Without it, every call that needs approval is refused. The
   * code waits for the answer up to the limit `hostTime`, an hour by default.
   */
  readonly approve?: Approve;
  /**
   * The session in which all code runs, which then keeps its variables. By default each call has a
   * fresh one, so that the tool can serve several users.
   */
  readonly session?: Session;
}

/** A tool whose code calls others. `Call` is what the framework tells it of its own call. */
export interface CodeMode<Call> {
  /** What the model reads: the functions as Python. */
  readonly description: string;
  /** Runs the code of a call. */
  readonly run: (
    code: string,
    call: Call,
    signal: AbortSignal | undefined,
  ) => Promise<PythonResult>;
}

/**
 * Makes tools of a framework functions of code.
 *
 * @param describe returns the tools. It gets a function that returns the model's call whose code
 * runs, for the name of the tool that asks for it.
 * @throws {ConfigError} two tools have the same name in Python, or an option is invalid.
 */
export function codeModeOf<Call>(
  describe: (callOf: (name: string) => Call) => readonly Described[],
  options: CodeModeOptions,
): CodeMode<Call> {
  const { approve: _, session: shared, timeout, maxChars, maxPictures, ...policy } = options;
  const given = Object.keys(policy);
  if (shared !== undefined && given.length > 0) {
    throw new ConfigError(`\`session\` has a policy, so \`${given.join("`, `")}\` cannot be given`);
  }
  const calls = new AsyncLocalStorage<{ readonly call: Call }>();
  const functions = hostFunctions(describe((name) => {
    const store = calls.getStore();
    if (store === undefined) throw new Error(`\`${name}\` was called after the code had ended`);
    return store.call;
  }));
  const tools = functions.map(({ tool }) => tool);
  const ofModel: ModelOptions = {
    ...(timeout !== undefined && { timeout }),
    ...(maxChars !== undefined && { maxChars }),
    ...(maxPictures !== undefined && { maxPictures }),
  };
  const sandbox = new Sandbox(policy);
  return {
    description: shown(functions.map(({ stub }) => stub), shared !== undefined),
    run: async (code, call, signal) => {
      const run = (session: Session) =>
        calls.run({ call }, () => runForModel(session, code, ofModel, signal, tools));
      if (shared) return await run(shared);
      signal?.throwIfAborted();
      await using session = await sandbox.session();
      return await run(session);
    },
  };
}

/**
 * Checks that an option by the names of tools names those that there are.
 *
 * @throws {ConfigError} it names another one.
 */
export function checkNames(option: string, given: object, tools: object): void {
  for (const name of Object.keys(given)) {
    if (Object.hasOwn(tools, name)) continue;
    throw new ConfigError(`\`${option}\` names \`${name}\`, and there is no such tool`);
  }
}

/** Returns what an option says of a tool. */
export function own<Value>(
  record: Readonly<Record<string, Value>>,
  name: string,
): Value | undefined {
  return Object.hasOwn(record, name) ? record[name] : undefined;
}

/** Returns the description of a tool, which says that a call needs approval if it may. */
export function withApproval(description: string, needsApproval: boolean): string {
  if (!needsApproval) return description;
  const note = "A call needs approval, and raises PermissionError if it is refused.";
  return `${description}\n\n${note}`.trim();
}

function shown(stubs: readonly string[], isKept: boolean): string {
  const kept = isKept
    ? "Variables and imports are kept from call to call."
    : "Each call begins anew, without the variables of earlier ones.";
  const about = `\
Run Python code in a sandbox, and get what it printed and the value of its last expression.
${kept}`;
  if (stubs.length === 0) return about;
  return `${about}
Combine several calls of functions in one code where that saves steps. The code can call these
functions, which are plain and need no import:

\`\`\`python
${stubs.join("\n\n")}
\`\`\``;
}
