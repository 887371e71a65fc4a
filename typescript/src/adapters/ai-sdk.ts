// Tools for the AI SDK of Vercel: one that runs Python, and one whose code calls other tools.

import { asSchema, jsonSchema, type Tool, tool as makeTool, type ToolSet } from "ai";

import { ConfigError } from "../errors.js";
import type { JsonSchema } from "../schema.js";
import type { Session } from "../session.js";
import type { CallContext } from "../tools.js";
import { type Approve, ask } from "./approvals.js";
import {
  checkNames,
  codeModeOf,
  type CodeModeOptions as Options,
  own,
  withApproval,
} from "./code_mode.js";
import type { Described } from "./functions.js";
import {
  CODE_SCHEMA,
  codeOf,
  DESCRIPTION,
  type PythonResult,
  type PythonToolOptions,
  runForModel,
} from "./runs.js";

export type { ApprovalRequest, Approve } from "./approvals.js";
export type { ModelOptions, Picture, PythonResult, PythonToolOptions } from "./runs.js";

/** A tool of the AI SDK that runs Python. */
export type PythonTool = Tool<{ code: string }, PythonResult> & {
  execute: NonNullable<Tool<{ code: string }, PythonResult>["execute"]>;
};

/** What the AI SDK tells a tool of its call. */
type Execution = Parameters<NonNullable<Tool["execute"]>>[1];

/** Whether a call needs approval. */
export type NeedsApproval =
  | boolean
  | ((
    input: unknown,
    options: Pick<Execution, "toolCallId" | "messages" | "context">,
  ) => boolean | PromiseLike<boolean>);

/** The settings of `codeMode`, and what its code may do: the options of `Sandbox`. */
export interface CodeModeOptions extends Options {
  /**
   * Whether calls need approval, by the name of the tool. It adds to the tools' own
   * `needsApproval`; the `toolApproval` of `generateText` does not reach what the code calls.
   */
  readonly needsApproval?: Readonly<Record<string, NeedsApproval>>;
  /** The context of tools that have a `contextSchema`, by their names. */
  readonly toolsContext?: Readonly<Record<string, unknown>>;
}

/**
 * Returns a tool that runs Python in a session, which keeps its variables.
 *
 * The model gets the output, the value or the traceback, and the pictures. Calls wait for each
 * other; when the AI SDK aborts one, its code is interrupted. If a limit has ended the session, the
 * next call starts it anew, and says so.
 *
 * ```ts
 * await generateText({ model, prompt, tools: { python: pythonTool(session) } });
 * ```
 */
export function pythonTool(session: Session, options: PythonToolOptions = {}): PythonTool {
  const { description = DESCRIPTION } = options;
  return runsPython(description, (code, { abortSignal }) =>
    runForModel(session, code, options, abortSignal)
  );
}

/**
 * Returns a tool whose code calls other tools of the AI SDK as functions: `search(query="moons")`.
 *
 * The model sees one tool, with the functions in its description as Python, so that it can chain
 * and combine them in one step. Inputs are checked against the tools' schemas. What a tool returns,
 * the code gets as JSON would have it; what it throws, as an exception.
 *
 * ```ts
 * const python = codeMode({ search, remove }, {
 *   needsApproval: { remove: true },
 *   approve: ({ toolName, input }) => askUser(toolName, input),
 *   limits: { runTime: 10 },
 * });
 * await generateText({ model, prompt, tools: { python } });
 * ```
 *
 * @throws {ConfigError} a tool has no `execute` or no schema that is known now, two tools have the
 * same name in Python, or an option is invalid.
 */
export function codeMode(tools: ToolSet, options: CodeModeOptions = {}): PythonTool {
  const { needsApproval = {}, toolsContext = {}, ...others } = options;
  checkNames("needsApproval", needsApproval, tools);
  const { description, run } = codeModeOf<Execution>((callOf) =>
    Object.entries(tools).map(([name, inner]) =>
      described({
        name,
        inner,
        rules: [inner.needsApproval as NeedsApproval | undefined, own(needsApproval, name)],
        approve: others.approve,
        context: own(toolsContext, name),
        callOf,
      })
    ), others);
  return runsPython(description, (code, execution) => run(code, execution, execution.abortSignal));
}

function runsPython(
  description: string,
  run: (code: string, execution: Execution) => Promise<PythonResult>,
): PythonTool {
  const inputSchema = jsonSchema<{ code: string }>(CODE_SCHEMA, {
    validate: (value) => {
      try {
        return { success: true, value: { code: codeOf(value) } };
      } catch (error) {
        return { success: false, error: error as Error };
      }
    },
  });
  return makeTool({
    description,
    inputSchema,
    execute: ({ code }, execution: Execution) => run(code, execution),
    toModelOutput: ({ output: { text, isError, pictures } }) => {
      if (pictures.length === 0) return { type: isError ? "error-text" : "text", value: text };
      const files = pictures.map(({ mediaType, data }) => ({
        type: "file" as const,
        mediaType,
        data: { type: "data" as const, data },
      }));
      return { type: "content", value: [{ type: "text", text }, ...files] };
    },
  }) as PythonTool;
}

/** A tool that code may call. */
interface Inner {
  readonly name: string;
  readonly inner: ToolSet[string];
  /** A call needs approval if one of them says so. */
  readonly rules: readonly (NeedsApproval | undefined)[];
  readonly approve: Approve | undefined;
  readonly context: unknown;
  readonly callOf: (name: string) => Execution;
}

function described({ name, inner, rules, approve, context, callOf }: Inner): Described {
  const execute = inner.execute as Tool["execute"];
  if (typeof execute !== "function") {
    throw new ConfigError(`the tool \`${name}\` has no \`execute\`, so code cannot call it`);
  }
  const schema = asSchema(inner.inputSchema as Parameters<typeof asSchema>[0]);
  const output = inner.outputSchema && asSchema(inner.outputSchema);
  const contextSchema = inner.contextSchema && asSchema(inner.contextSchema);
  const needsAny = rules.some((rule) => rule !== undefined && rule !== false);
  const call = async (args: Record<string, unknown>, { callId, signal }: CallContext) => {
    const outer = callOf(name);
    const toolCallId = `${outer.toolCallId}.${callId}`;
    const signals = [signal, ...(outer.abortSignal ? [outer.abortSignal] : [])];
    const abortSignal = AbortSignal.any(signals);
    const input = await checked(schema, args);
    const its = contextSchema ? await checked(contextSchema, context) : context;
    const options = { ...outer, toolCallId, abortSignal, context: its };
    if (await isNeeded(rules, input, options)) {
      await ask(approve, { toolName: name, input, toolCallId, abortSignal });
    }
    // An answer may come when nobody waits for the call any more.
    abortSignal.throwIfAborted();
    return await last(execute.call(inner, input, options));
  };
  return {
    name,
    description: withApproval(descriptionOf(inner, context), needsAny),
    schema: known(schema.jsonSchema, name),
    ...(output && { returns: known(output.jsonSchema, name) }),
    call,
  };
}

async function isNeeded(
  rules: readonly (NeedsApproval | undefined)[],
  input: unknown,
  options: Execution,
): Promise<boolean> {
  for (const rule of rules) {
    if (typeof rule === "function" ? await rule(input, options) : rule) return true;
  }
  return false;
}

async function checked(schema: ReturnType<typeof asSchema>, args: unknown): Promise<unknown> {
  const result = await schema.validate?.(args);
  if (result === undefined) return args;
  if (!result.success) throw new TypeError(result.error.message);
  return result.value;
}

/** Returns what a tool returns; of several results, the last one. */
async function last(result: unknown): Promise<unknown> {
  const isMany = typeof result === "object" && result !== null && Symbol.asyncIterator in result;
  if (!isMany) return await result;
  let found: unknown;
  for await (const each of result as AsyncIterable<unknown>) found = each;
  return found;
}

function descriptionOf(inner: ToolSet[string], context: unknown): string {
  const { description } = inner as Pick<Tool, "description">;
  if (typeof description !== "function") return description ?? "";
  return description({ context: context as never });
}

function known(schema: unknown, name: string): JsonSchema {
  if (typeof schema === "object" && schema !== null && !("then" in schema)) {
    return schema as JsonSchema;
  }
  throw new ConfigError(
    `the schema of the tool \`${name}\` is a promise, and the description has to show it now`,
    "await it before, and pass `jsonSchema(await ...)`",
  );
}
