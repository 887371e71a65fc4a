// The parameters of tools: from JSON Schema, or from a Standard Schema such as zod's.

import { ConfigError } from "./errors.js";

/** A JSON schema, of which isolet reads types, `items`, `anyOf`, `enum` and `const`. */
export type JsonSchema = { readonly [key: string]: unknown };

/** A schema of zod, valibot, arktype or another library, as `standardschema.dev` describes it. */
export interface StandardSchema<Input = unknown, Output = Input> {
  readonly "~standard": {
    readonly version: 1;
    readonly vendor: string;
    readonly validate: (value: unknown) => Validated<Output> | Promise<Validated<Output>>;
    readonly types?: { readonly input: Input; readonly output: Output } | undefined;
    readonly jsonSchema?: {
      readonly input: (options: { readonly target: string }) => JsonSchema;
    };
  };
}

type Validated<Output> =
  | { readonly value: Output; readonly issues?: undefined }
  | { readonly issues: readonly Issue[] };

interface Issue {
  readonly message: string;
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined;
}

/** What a schema allows. */
export type OutputOf<Schema> = Schema extends StandardSchema<unknown, infer Output>
  ? Output
  : Readonly<Record<string, unknown>>;

/** A parameter as `docs/reference/protocol.md` describes it. */
export interface WireParameter {
  name: string;
  schema?: JsonSchema;
  doc?: string;
  default?: unknown;
  optional?: boolean;
  kind?: "var_positional" | "var_keyword";
}

/** Returns whether a schema has a validation of its own. */
export function isStandard(schema: object): schema is StandardSchema {
  const standard: unknown = (schema as { "~standard"?: unknown })["~standard"];
  return typeof standard === "object" && standard !== null && "validate" in standard;
}

/**
 * Returns the parameters of a tool whose only argument is an object of this schema.
 *
 * @throws {ConfigError} it is no schema of an object.
 */
export function parameters(schema: JsonSchema | StandardSchema, tool: string): WireParameter[] {
  const json = isStandard(schema) ? jsonSchemaOf(schema) : schema;
  // Of a schema that does not say what it allows: any names, which it checks itself.
  if (json === undefined) return named(schema) ?? [{ name: "arguments", kind: "var_keyword" }];
  const { type, properties } = json;
  if (type !== "object" || typeof properties !== "object" || properties === null) {
    throw new ConfigError(
      `the parameters of the tool \`${tool}\` are ${JSON.stringify(json).slice(0, 80)}, and have ` +
        "to be the schema of an object",
    );
  }
  const required = new Set(Array.isArray(json["required"]) ? json["required"] : []);
  return Object.entries(properties as Record<string, JsonSchema>).map(([name, its]) => {
    const { description, default: value, ...rest } = its;
    const parameter: WireParameter = { name, schema: rest };
    if (typeof description === "string") parameter.doc = description;
    if (value !== undefined) parameter.default = value;
    else if (!required.has(name)) parameter.optional = true;
    return parameter;
  });
}

/** The JSON schema of a Standard Schema, if its library can say it. */
export function jsonSchemaOf(schema: StandardSchema): JsonSchema | undefined {
  const target = "draft-2020-12";
  const standard = schema["~standard"].jsonSchema;
  if (standard) return standard.input({ target });
  const own = schema as { toJSONSchema?: unknown; toJsonSchema?: unknown };
  for (const make of [own.toJSONSchema, own.toJsonSchema]) {
    if (typeof make === "function") return make.call(schema) as JsonSchema;
  }
  return undefined;
}

/** The names in valibot's schema of an object, which says no more by itself. */
function named(schema: object): WireParameter[] | undefined {
  const { type, entries } = schema as { type?: unknown; entries?: unknown };
  if (type !== "object" || typeof entries !== "object" || entries === null) return undefined;
  return Object.entries(entries as Record<string, { type?: unknown }>).map(([name, its]) => {
    const isOptional = its.type === "optional" || its.type === "nullish";
    return isOptional ? { name, optional: true } : { name };
  });
}

/**
 * Returns what a schema makes of a value.
 *
 * @throws {TypeError} the value does not fit.
 */
export async function validated(schema: StandardSchema, value: unknown): Promise<unknown> {
  const result = await schema["~standard"].validate(value);
  if (result.issues === undefined) return result.value;
  const issues = result.issues.slice(0, 8).map(({ message, path = [] }) => {
    const keys = path.map((part) => String(typeof part === "object" ? part.key : part));
    return keys.length === 0 ? message : `${keys.join(".")}: ${message}`;
  });
  throw new TypeError(issues.join("; "));
}
