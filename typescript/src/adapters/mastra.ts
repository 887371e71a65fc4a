// Tools for Mastra: one that runs Python, and one whose code calls other tools.

import {
  createTool,
  isValidationError,
  type Tool as MastraTool,
  type ToolExecutionContext,
} from "@mastra/core/tools";

import { ConfigError } from "../errors.js";
import { isStandard, jsonSchemaOf, type JsonSchema, validated } from "../schema.js";
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
  type PythonToolOptions as PythonOptions,
  runForModel,
} from "./runs.js";

export type { ApprovalRequest, Approve } from "./approvals.js";
export type { ModelOptions, Picture, PythonResult } from "./runs.js";

/** A tool of Mastra that runs Python. */
export type PythonTool = MastraTool<{ code: string }, PythonResult>;

/** Tools of Mastra by name. `createTool` makes them; what they take and return may be anything. */
export type Tools = Readonly<Record<string, MastraTool<any, any, any, any, any, any, any>>>;

/** Whether a call needs approval. */
export type RequireApproval =
  | boolean
  | ((
    input: unknown,
    context: {
      readonly requestContext?: Record<string, unknown>;
      readonly workspace?: NonNullable<ToolExecutionContext["workspace"]>;
    },
  ) => boolean | PromiseLike<boolean>);

/** The settings of `pythonTool`. */
export interface PythonToolOptions extends PythonOptions {
  /** The `id` of the tool, `run_python` by default. */
  readonly id?: string;
  /** Whether a person has to approve each code: the run of the agent is then suspended. */
  readonly requireApproval?: boolean;
}

/** The settings of `codeMode`, and what its code may do: the options of `Sandbox`. */
export interface CodeModeOptions extends Options {
  /** The `id` of the tool, `run_python` by default. */
  readonly id?: string;
  /**
   * Whether calls need approval, by the name of the tool. It adds to the tools' own
   * `requireApproval`; the `requireToolApproval` of an agent's run does not reach what the code
   * calls.
   */
  readonly requireApproval?: Readonly<Record<string, RequireApproval>>;
}

/**
 * Returns a tool that runs Python in a session, which keeps its variables.
 *
 * The model gets the output, the value or the traceback, and the pictures. Calls wait for each
 * other; when the agent's run is aborted, its code is interrupted. If a limit has ended the
 * session, the next call starts it anew, and says so.
 *
 * ```ts
 * const python = pythonTool(session);
 * const agent = new Agent({ id, name, instructions, model, tools: { python } });
 * ```
 */
export function pythonTool(session: Session, options: PythonToolOptions = {}): PythonTool {
  const { id, description = DESCRIPTION, requireApproval = false, ...ofModel } = options;
  return runsPython({ id, description, requireApproval }, (code, { abortSignal }) =>
    runForModel(session, code, ofModel, abortSignal)
  );
}

/**
 * Returns a tool whose code calls other tools of Mastra as functions: `search(query="moons")`.
 *
 * The model sees one tool, with the functions in its description as Python, so that it can chain
 * and combine them in one step. Inputs are checked against the tools' schemas. What a tool returns,
 * the code gets as JSON would have it; what it throws, as an exception. A tool cannot suspend the
 * agent's run while code waits for it: the code gets an exception.
 *
 * ```ts
 * const python = codeMode({ search, remove }, {
 *   requireApproval: { remove: true },
 *   approve: ({ toolName, input }) => askUser(toolName, input),
 *   limits: { runTime: 10 },
 * });
 * ```
 *
 * @throws {ConfigError} a tool has no `execute` or no JSON schema, two tools have the same name in
 * Python, or an option is invalid.
 */
export function codeMode(tools: Tools, options: CodeModeOptions = {}): PythonTool {
  const { id, requireApproval = {}, ...others } = options;
  checkNames("requireApproval", requireApproval, tools);
  const { description, run } = codeModeOf<ToolExecutionContext>((callOf) =>
    Object.entries(tools).map(([name, inner]) =>
      described({
        name,
        inner,
        rule: own(requireApproval, name),
        approve: others.approve,
        callOf,
      })
    ), others);
  return runsPython({ id, description, requireApproval: false }, (code, context) =>
    run(code, context, context.abortSignal)
  );
}

function runsPython(
  about: { id: string | undefined; description: string; requireApproval: boolean },
  run: (code: string, context: ToolExecutionContext) => Promise<PythonResult>,
): PythonTool {
  const { id = "run_python", description, requireApproval } = about;
  const made = createTool({
    id,
    description,
    requireApproval,
    inputSchema: CODE_SCHEMA,
    execute: async (input: unknown, context) => await run(codeOf(input), context),
    toModelOutput: (output: unknown) => {
      const { text, isError, pictures } = output as PythonResult;
      if (pictures.length === 0) return { type: isError ? "error-text" : "text", value: text };
      const media = pictures.map((picture) => ({ type: "media", ...picture }));
      return { type: "content", value: [{ type: "text", text }, ...media] };
    },
  });
  return made as unknown as PythonTool;
}

/** A tool that code may call. */
interface Inner {
  readonly name: string;
  readonly inner: Tools[string];
  /** A call needs approval if it or the tool itself says so. */
  readonly rule: RequireApproval | undefined;
  readonly approve: Approve | undefined;
  readonly callOf: (name: string) => ToolExecutionContext;
}

function described({ name, inner, rule, approve, callOf }: Inner): Described {
  const { execute, inputSchema, outputSchema, needsApprovalFn, description } = inner;
  if (typeof execute !== "function") {
    throw new ConfigError(`the tool \`${name}\` has no \`execute\`, so code cannot call it`);
  }
  const rules = [inner.requireApproval, needsApprovalFn, rule] as (RequireApproval | undefined)[];
  const needsAny = rules.some((each) => each !== undefined && each !== false);
  const call = async (args: Record<string, unknown>, { callId, signal }: CallContext) => {
    const outer = callOf(name);
    const toolCallId = `${outer.agent?.toolCallId ?? inner.id}.${callId}`;
    const signals = [signal, ...(outer.abortSignal ? [outer.abortSignal] : [])];
    const abortSignal = AbortSignal.any(signals);
    if (needsAny) {
      const isChecked = inputSchema !== undefined && isStandard(inputSchema);
      const input = isChecked ? await validated(inputSchema, args) : args;
      if (await isNeeded(rules, input, outer)) {
        await ask(approve, { toolName: name, input, toolCallId, abortSignal });
      }
    }
    // An answer may come when nobody waits for the call any more.
    abortSignal.throwIfAborted();
    const result = await execute.call(inner, args, contextOf(outer, toolCallId, abortSignal, name));
    if (isValidationError(result)) throw new TypeError(result.message);
    return result;
  };
  return {
    name,
    description: withApproval(description, needsAny),
    schema: schemaOf(inputSchema, name) ?? {},
    returns: schemaOf(outputSchema, name),
    call,
  };
}

/** Returns what a tool knows of its call: all that the tool that runs the code does. */
function contextOf(
  outer: ToolExecutionContext,
  toolCallId: string,
  abortSignal: AbortSignal,
  name: string,
): ToolExecutionContext {
  const suspend = (): Promise<never> => {
    throw new Error(`\`${name}\` cannot suspend the agent's run while code waits for it`);
  };
  const { agent, workflow } = outer;
  return {
    ...outer,
    abortSignal,
    suspend,
    ...(agent && { agent: { ...agent, toolCallId, suspend } }),
    ...(workflow && { workflow: { ...workflow, suspend } }),
  };
}

async function isNeeded(
  rules: readonly (RequireApproval | undefined)[],
  input: unknown,
  { requestContext, workspace }: ToolExecutionContext,
): Promise<boolean> {
  const context = {
    ...(requestContext && { requestContext: requestContext.toJSON() }),
    ...(workspace && { workspace }),
  };
  for (const rule of rules) {
    if (typeof rule === "function" ? await rule(input, context) : rule) return true;
  }
  return false;
}

function schemaOf(schema: unknown, name: string): JsonSchema | undefined {
  if (schema === undefined) return undefined;
  const made = isStandard(schema as object) && jsonSchemaOf(schema as never);
  if (made) return made;
  throw new ConfigError(`a schema of the tool \`${name}\` has no JSON schema, which code needs`);
}
