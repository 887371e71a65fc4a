// Makes tools of frameworks functions of the guest: their names, parameters and results.

import { ConfigError, TransferError } from "../errors.js";
import { type JsonSchema, parameters, type WireParameter } from "../schema.js";
import type { CallContext, Tool } from "../tools.js";
import { isPythonName, pythonName, stub } from "./stubs.js";

/** A tool of a framework. */
export interface Described {
  /** Its name there. */
  readonly name: string;
  readonly description: string;
  /** The schema of its arguments, an object. */
  readonly schema: JsonSchema;
  /** The schema of what it returns. */
  readonly returns?: JsonSchema | undefined;
  /** Calls it. What it returns reaches the guest as JSON would, with bytes and large integers. */
  readonly call: (args: Record<string, unknown>, context: CallContext) => unknown;
}

/** A function of the guest. */
export interface HostFunction {
  readonly tool: Tool;
  /** How a model reads it. */
  readonly stub: string;
}

/** The deepest nesting of a result. */
const DEEPEST = 200;

/**
 * Returns the function for a tool: `get_user(name: str)` for `get-user`. What the schema requires
 * comes first. If the name of an argument is none of Python's, the function takes them as a dict.
 *
 * @throws {ConfigError} the schema is none of an object.
 */
export function hostFunction(described: Described): HostFunction {
  const { description: doc, schema, returns } = described;
  const name = pythonName(described.name);
  const { all, isWhole } = parametersOf(schema, described.name);
  const call = async (args: Record<string, unknown>, context: CallContext): Promise<unknown> => {
    const given = isWhole ? (args["arguments"] as Record<string, unknown> | undefined) : args;
    return plain(await described.call(given ?? {}, context), 0);
  };
  const wire: Tool["wire"] = { name, doc, parameters: all, ...(returns && { returns }) };
  const shown = stub({ name, doc, parameters: all, root: schema, returns });
  return { tool: { name, call, wire }, stub: shown };
}

/**
 * Returns functions for tools.
 *
 * @throws {ConfigError} two tools have the same name in Python, or a schema is none of an object.
 */
export function hostFunctions(all: Iterable<Described>): HostFunction[] {
  const names = new Map<string, string>();
  return Array.from(all, (described) => {
    const made = hostFunction(described);
    const other = names.get(made.tool.name);
    if (other !== undefined) {
      throw new ConfigError(
        `the tools \`${other}\` and \`${described.name}\` are both \`${made.tool.name}\` in Python`,
        "rename one",
      );
    }
    names.set(made.tool.name, described.name);
    return made;
  });
}

/** Returns the parameters, and whether there is one for all arguments. */
function parametersOf(
  schema: JsonSchema,
  tool: string,
): { all: WireParameter[]; isWhole: boolean } {
  const properties = (schema["properties"] ?? {}) as Readonly<Record<string, JsonSchema>>;
  const names = Object.keys(properties);
  const { type = "object" } = schema;
  if (type === "object" && names.length === 0) {
    const isClosed = schema["additionalProperties"] === false;
    const any: WireParameter = { name: "arguments", kind: "var_keyword" };
    return { all: isClosed ? [] : [any], isWhole: !isClosed };
  }
  if (names.some((name) => !isPythonName(name))) {
    return { all: [{ name: "arguments", schema }], isWhole: true };
  }
  const rank = ({ optional, default: value }: WireParameter) =>
    Number(optional || value !== undefined);
  const all = parameters({ ...schema, type }, tool).sort((a, b) => rank(a) - rank(b));
  return { all, isWhole: false };
}

/** Returns a result as plain data: objects as JSON has them, and bytes as they are. */
function plain(value: unknown, depth: number): unknown {
  if (depth > DEEPEST) {
    throw new TransferError(`the result is nested deeper than ${DEEPEST}, or in itself`);
  }
  if (typeof value === "function" || typeof value === "symbol") return undefined;
  if (typeof value !== "object" || value === null) return value;
  if (value instanceof Uint8Array || value instanceof ArrayBuffer) return value;
  if (Array.isArray(value)) return value.map((each) => plain(each, depth + 1));
  if (value instanceof Map) {
    return new Map(Array.from(value, ([key, its]) => [key, plain(its, depth + 1)]));
  }
  if ("toJSON" in value && typeof value.toJSON === "function") {
    return plain(value.toJSON(), depth + 1);
  }
  const items = Object.entries(value).map(([key, its]) => [key, plain(its, depth + 1)] as const);
  // Own properties, whatever their names.
  return Object.fromEntries(items);
}
