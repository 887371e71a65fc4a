// Functions of this program that guests can call.

import { ConfigError } from "./errors.js";
import {
  isStandard,
  type JsonSchema,
  type OutputOf,
  parameters,
  type StandardSchema,
  validated,
  type WireParameter,
} from "./schema.js";
import {
  byKey,
  callback,
  flag,
  object,
  oneOf,
  seconds,
  type Shapes,
  text,
  unchecked,
  whole,
  wrong,
} from "./shapes.js";

/** What a tool knows of the call that it serves. */
export interface CallContext {
  /** The number of the call, unique in its session, which one that is made again keeps. */
  readonly callId: number;
  /** Aborted when the guest no longer waits for the answer. */
  readonly signal: AbortSignal;
}

/** The settings of a tool. */
export interface ToolOptions<Schema extends JsonSchema | StandardSchema> {
  /** The name of the function in the guest. */
  readonly name: string;
  /** Its documentation in the guest. */
  readonly description?: string;
  /** The schema of an object: each of its keys is a parameter, which may be given by position. */
  readonly parameters?: Schema;
  /** The JSON schema of what it returns, for the guest's documentation. */
  readonly returns?: JsonSchema;
  /** `plain`, or `async` for a function that the guest awaits. */
  readonly style?: "plain" | "async";
  /** The most seconds that a call may take; then the guest gets `TimeoutError`. */
  readonly timeout?: number;
  /** The most calls in a session; then the guest gets `RuntimeError`. */
  readonly maxCalls?: number;
  /** Whether a call that was under way when the server ended is made again. */
  readonly idempotent?: boolean;
  /** The function. It has all rights of this program: its arguments are untrusted. */
  readonly execute: (
    args: OutputOf<Schema>,
    context: CallContext,
  ) => unknown | Promise<unknown>;
}

/** An exception that the guest gets by this name of a class. Other errors have one that fits. */
export class ToolError extends Error {
  /** The name of the class in Python, such as `KeyError`. */
  readonly type: string;
  /** What that class is based on, by names in Python's standard library, the nearest first. */
  readonly bases: readonly string[];

  constructor(type: string, message: string, bases: readonly string[] = []) {
    super(message);
    this.type = type;
    this.bases = bases;
  }
}

/** A function of the host as guests see it. `tool` makes it. */
export interface Tool {
  readonly name: string;
  /** Calls it with arguments from the guest, by parameter. */
  readonly call: (args: Record<string, unknown>, context: CallContext) => Promise<unknown>;
  /** As `docs/reference/protocol.md` describes it. */
  readonly wire: WireTool;
}

interface WireTool {
  name: string;
  doc: string;
  parameters: WireParameter[];
  returns?: JsonSchema;
  style?: "async";
  timeout?: number;
  max_calls?: number;
  idempotent?: true;
}

/** Functions by name, or tools. A function gets what the guest passes by position. */
export type Tools =
  | readonly Tool[]
  | Readonly<Record<string, Tool | ((...args: never[]) => unknown)>>;

const TOOL: Shapes<ToolOptions<JsonSchema>> = {
  name: text,
  description: text,
  // arktype's schemas are functions.
  parameters: (value, place) => {
    const isSchema = typeof value === "function" || (typeof value === "object" && value !== null);
    if (!isSchema) throw wrong(place, value, "a schema");
  },
  returns: byKey(unchecked, "keywords of JSON Schema"),
  style: oneOf("plain", "async"),
  timeout: seconds,
  maxCalls: whole(),
  idempotent: flag,
  execute: callback,
};
const TOOL_SHAPE = object(TOOL, ["name", "execute"]);

/**
 * Makes a function callable by guests, which see its parameters, their types and its description.
 * Arguments are checked against the schema. What the function returns crosses as values do; what it
 * throws, the guest gets as an exception with the same text.
 *
 * @throws {ConfigError} the name or the schema is none, or an option is not what it has to be.
 */
export function tool<const Schema extends JsonSchema | StandardSchema = JsonSchema>(
  options: ToolOptions<Schema>,
): Tool {
  TOOL_SHAPE(options, "tool");
  const { name, description, parameters: schema, execute } = options;
  checkName(name);
  const wire: WireTool = { name, doc: description ?? "", parameters: [] };
  if (schema != null) wire.parameters = parameters(schema, name);
  if (options.returns != null) wire.returns = options.returns;
  if (options.style === "async") wire.style = "async";
  if (options.timeout != null) wire.timeout = options.timeout;
  if (options.maxCalls != null) wire.max_calls = options.maxCalls;
  if (options.idempotent) wire.idempotent = true;
  // All keywords of a schema that does not say which it has are in one.
  const isOne = wire.parameters[0]?.kind === "var_keyword";
  const call = async (args: Record<string, unknown>, context: CallContext): Promise<unknown> => {
    const given = isOne ? args["arguments"] : args;
    const checked =
      schema != null && isStandard(schema) ? await validated(schema, given) : given;
    return await execute(checked as OutputOf<Schema>, context);
  };
  return { name, call, wire };
}

/**
 * Returns tools by name.
 *
 * @throws {ConfigError} one is none, or two have the same name.
 */
export function collect(tools: Tools): Map<string, Tool> {
  const found = new Map<string, Tool>();
  const add = (made: Tool) => {
    if (found.has(made.name)) throw new ConfigError(`two tools have the name \`${made.name}\``);
    found.set(made.name, made);
  };
  if (Array.isArray(tools)) {
    tools.forEach((each: unknown, at) => add(checked(each, `tools[${at}]`)));
    return found;
  }
  byKey(unchecked, "functions by name, or an array of tools")(tools, "tools");
  for (const [name, each] of Object.entries(tools)) {
    if (typeof each === "function") {
      add(ofFunction(name, each as (...args: unknown[]) => unknown));
    } else {
      const { wire, ...rest } = checked(each, `tools[${JSON.stringify(name)}]`);
      add({ ...rest, name, wire: { ...wire, name } });
    }
  }
  return found;
}

function checked(each: unknown, place: string): Tool {
  if (typeof each === "object" && each !== null && "wire" in each) return each as Tool;
  if (typeof each === "function") {
    throw new ConfigError(`\`${place}\` is a function without a name`, NAMED);
  }
  throw wrong(place, each, "a function or a tool", NAMED);
}

const NAMED = "name it, `tools: { search }`, or describe it, `tools: [tool({ name, execute })]`";

function ofFunction(name: string, execute: (...args: unknown[]) => unknown): Tool {
  checkName(name);
  const call = async ({ args }: Record<string, unknown>) =>
    await execute(...(Array.isArray(args) ? (args as unknown[]) : []));
  return {
    name,
    call,
    wire: { name, doc: "", parameters: [{ name: "args", kind: "var_positional" }] },
  };
}

function checkName(name: string): void {
  if (!/^[\p{ID_Start}_][\p{ID_Continue}]*$/u.test(name)) {
    throw new ConfigError(`a tool cannot have the name \`${name}\``, "give it a name of Python's");
  }
}

/** The classes of Python that errors of JavaScript come as. */
const CLASSES: Readonly<Record<string, string>> = {
  __proto__: null as never,
  TypeError: "TypeError",
  RangeError: "ValueError",
  SyntaxError: "ValueError",
  URIError: "ValueError",
  TimeoutError: "TimeoutError",
};

/** Returns the name of the class, the text and the bases of what a tool has thrown. */
export function raised(error: unknown): [type: string, text: string, bases: readonly string[]] {
  if (error instanceof ToolError) return [error.type, error.message, error.bases];
  if (!(error instanceof Error)) return ["RuntimeError", String(error), []];
  const name = error.name;
  const own = CLASSES[name];
  if (own !== undefined) return [own, error.message, []];
  // A class of the program's, under its own name.
  const isName = name !== "Error" && /^[A-Za-z_]\w*$/.test(name);
  return [isName ? name : "RuntimeError", error.message, isName ? ["RuntimeError"] : []];
}

/** What a call has come to: an encoded value, or what the guest raises. */
export type Outcome<Encoded> = { value: Encoded } | { raised: ReturnType<typeof raised> };

/** Calls a tool. `encode` gets what it returns, and that value's name. */
export async function serve<Encoded>(
  tools: ReadonlyMap<string, Tool> | undefined,
  name: string,
  args: Record<string, unknown>,
  context: CallContext,
  encode: (value: unknown, name: string) => Encoded,
): Promise<Outcome<Encoded>> {
  try {
    const found = tools?.get(name);
    if (!found) throw new Error(`this program has no tool \`${name}\``);
    return { value: encode(await found.call(args, context), `${name}()`) };
  } catch (error) {
    return { raised: raised(error) };
  }
}
