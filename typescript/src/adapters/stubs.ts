// Shows functions of the host as Python that a model reads, from their JSON schemas.

import type { JsonSchema, WireParameter } from "../schema.js";

/** A function as it is shown. */
export interface Shown {
  /** Its name in Python. */
  readonly name: string;
  readonly doc: string;
  readonly parameters: readonly WireParameter[];
  /** The schema of the arguments, to which `$ref` refers. */
  readonly root: JsonSchema;
  /** The schema of what it returns. */
  readonly returns?: JsonSchema | undefined;
}

const KEYWORDS: ReadonlySet<string> = new Set(
  (
    "False None True and as assert async await break class continue def del elif else except " +
    "finally for from global if import in is lambda nonlocal not or pass raise return try while " +
    "with yield"
  ).split(" "),
);

const SIMPLE: Readonly<Record<string, string>> = {
  __proto__: null as never,
  string: "str",
  integer: "int",
  number: "float",
  boolean: "bool",
  null: "None",
};

/** Returns whether Python takes a text as the name of a variable. */
export function isPythonName(name: string): boolean {
  return /^[\p{ID_Start}_][\p{ID_Continue}]*$/u.test(name) && !KEYWORDS.has(name);
}

/** Returns a name of Python's for one of a framework, such as `get_user` for `get-user`. */
export function pythonName(name: string): string {
  if (isPythonName(name)) return name;
  const made = name.replace(/[^\p{ID_Continue}]/gu, "_");
  const begun = /^[\p{ID_Start}_]/u.test(made) ? made : `_${made}`;
  return KEYWORDS.has(begun) ? `${begun}_` : begun;
}

/** Returns the definition of a function without its body, after the types that it uses. */
export function stub({ name, doc, parameters, root, returns }: Shown): string {
  const types = new Types(name);
  const all = parameters.map((parameter) => parameterOf(parameter, types, root));
  const returned = returns === undefined ? "Any" : types.of(returns, "Result", returns);
  const lines = doc.split(/\r\n|[\n\r\u2028\u2029]/).map((line) => line.trimEnd());
  for (const { name: its, doc: about } of parameters) {
    if (about) lines.push(`${its}: ${oneLine(about)}`);
  }
  const text = lines.join("\n").trim();
  const head = `def ${name}(${all.join(", ")}) -> ${returned}:`;
  const body = text === "" ? "    ..." : `    """${quoted(text).replace(/\n(?!\n)/g, "\n    ")}"""`;
  return [...types.definitions, `${head}\n${body}`].join("\n");
}

function parameterOf(parameter: WireParameter, types: Types, root: JsonSchema): string {
  const { name, schema, kind } = parameter;
  if (kind !== undefined) return `${kind === "var_keyword" ? "**" : "*"}${name}: Any`;
  const shown = `${name}: ${types.of(schema, name, root)}`;
  if (parameter.default !== undefined) return `${shown} = ${literal(parameter.default)}`;
  return parameter.optional ? `${shown} = ...` : shown;
}

/** The types of a function: names, and the classes that they name. */
class Types {
  /** The classes. A class may refer to one that comes later, as Python 3.14 allows. */
  readonly definitions: string[] = [];
  readonly #prefix: string;
  readonly #references = new Map<unknown, string>();
  readonly #names = new Set<string>();

  constructor(name: string) {
    this.#prefix = camel(name);
  }

  /** Returns the type of a schema. `hint` names it, if it becomes a class. */
  of(schema: unknown, hint: string, root: JsonSchema): string {
    if (!isObject(schema)) return "Any";
    const { $ref: ref, const: only, enum: values, type, anyOf, oneOf } = schema;
    if (typeof ref === "string") return this.#reference(ref, root);
    if (only !== undefined) return literals([only]);
    if (Array.isArray(values)) return literals(values);
    const either = anyOf ?? oneOf;
    if (Array.isArray(either)) return union(either.map((each) => this.of(each, hint, root)));
    if (Array.isArray(type)) {
      return union(type.map((each) => this.of({ ...schema, type: each as unknown }, hint, root)));
    }
    if (type === "array") return `list[${this.of(schema["items"], `${hint}_item`, root)}]`;
    if (type === "object") return this.#object(schema, hint, root);
    return (typeof type === "string" ? SIMPLE[type] : undefined) ?? "Any";
  }

  #reference(ref: string, root: JsonSchema): string {
    const target = resolved(ref, root);
    if (!isObject(target)) return "Any";
    const known = this.#references.get(target);
    if (known !== undefined) return known;
    // What refers to itself has to have a name, which only a class has.
    this.#references.set(target, "Any");
    const hint = ref.split("/").at(-1) ?? "";
    const type = this.of(target, hint, root);
    this.#references.set(target, type);
    return type;
  }

  #object(schema: JsonSchema, hint: string, root: JsonSchema): string {
    const { properties, required, additionalProperties } = schema;
    if (!isObject(properties) || Object.keys(properties).length === 0) {
      return `dict[str, ${this.of(additionalProperties, `${hint}_value`, root)}]`;
    }
    const name = this.#named(hint);
    if (this.#references.has(schema)) this.#references.set(schema, name);
    const needed = new Set(Array.isArray(required) ? required : []);
    const fields = Object.entries(properties).map(([field, its]) => {
      const type = this.of(its, `${hint}_${field}`, root);
      const about = isObject(its) ? its["description"] : undefined;
      const note = typeof about === "string" ? `  # ${oneLine(about)}` : "";
      return { field, note, type: needed.has(field) ? type : `NotRequired[${type}]` };
    });
    if (fields.every(({ field }) => isPythonName(field))) {
      const lines = fields.map(({ field, type, note }) => `    ${field}: ${type}${note}`);
      this.definitions.push(`class ${name}(TypedDict):\n${lines.join("\n")}`);
    } else {
      const items = fields.map(({ field, type }) => `${literal(field)}: ${type}`);
      this.definitions.push(`${name} = TypedDict("${name}", {${items.join(", ")}})`);
    }
    return name;
  }

  #named(hint: string): string {
    const wanted = this.#prefix + camel(hint);
    let name = wanted;
    for (let count = 2; this.#names.has(name); count += 1) name = `${wanted}${count}`;
    this.#names.add(name);
    return name;
  }
}

/** Returns what `#/...` names; `undefined` if there is nothing, or it is elsewhere. */
function resolved(ref: string, root: JsonSchema): unknown {
  if (ref === "#") return root;
  if (!ref.startsWith("#/")) return undefined;
  let found: unknown = root;
  for (const part of ref.slice(2).split("/")) {
    const key = part.replaceAll("~1", "/").replaceAll("~0", "~");
    if (typeof found !== "object" || found === null || !Object.hasOwn(found, key)) return undefined;
    found = (found as Record<string, unknown>)[key];
  }
  return found;
}

function union(types: readonly string[]): string {
  const all = new Set(types);
  return all.size === 0 || all.has("Any") ? "Any" : [...all].join(" | ");
}

function literals(values: readonly unknown[]): string {
  const areSimple = values.every((value) =>
    value === null || ["string", "boolean"].includes(typeof value) || Number.isInteger(value)
  );
  return areSimple && values.length > 0 ? `Literal[${values.map(literal).join(", ")}]` : "Any";
}

/** Returns a value of JSON as Python writes it. */
function literal(value: unknown): string {
  if (value === true) return "True";
  if (value === false) return "False";
  if (Array.isArray(value)) return `[${value.map(literal).join(", ")}]`;
  if (isObject(value)) {
    const items = Object.entries(value).map(([key, its]) => `${literal(key)}: ${literal(its)}`);
    return `{${items.join(", ")}}`;
  }
  // A text of JSON is one of Python, too.
  return typeof value === "string" || typeof value === "number" ? JSON.stringify(value) : "None";
}

function camel(name: string): string {
  const words = name.split(/[^\p{L}\p{N}]+/u).filter((word) => word !== "");
  const made = words.map((word) => word[0]?.toUpperCase() + word.slice(1)).join("");
  return pythonName(made || "_");
}

function oneLine(text: string): string {
  return text.replace(/\s+/g, " ").trim();
}

function quoted(text: string): string {
  return text.replaceAll("\\", "\\\\").replaceAll('"""', '\\"\\"\\"').replace(/"$/, '\\"');
}

function isObject(value: unknown): value is JsonSchema {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
