// Values in JSON, as `docs/reference/protocol.md` describes it: for clients over HTTP.

import { ProtocolError } from "./errors.js";
import { DEEPEST, entriesOf, objectOf, refused } from "./wire.js";

const BYTES = "$bytes";
const FLOAT = "$float";
const DICT = "$dict";

/** The names of the numbers that JSON has not. */
const NUMBERS: Readonly<Record<string, number>> = {
  __proto__: null as never,
  nan: NaN,
  inf: Infinity,
  "-inf": -Infinity,
};

/** An integer that a number may not hold. */
const LONG_INTEGER = /(?<![\d.])\d{16,}(?![\d.eE])/;
/** The most digits of an integer from a node: reading takes more than linear time. */
const MOST_DIGITS = 100_000;

/**
 * Returns a value as JSON.
 *
 * @param value what crosses.
 * @param name what the value is, for errors.
 * @throws {TransferError} it is no plain data. The message names the place.
 */
export function encodeJson(value: unknown, name: string): string {
  const parts: string[] = [];
  write(value, [name], parts);
  return parts.join("");
}

/** Returns the object whose members are JSON already. Those that are `undefined` are left out. */
export function jsonOf(members: Readonly<Record<string, string | undefined>>): string {
  const given = Object.entries(members).filter(([, json]) => json !== undefined);
  return `{${given.map(([key, json]) => `${JSON.stringify(key)}:${json}`).join(",")}}`;
}

function write(value: unknown, path: (string | number)[], to: string[]): void {
  switch (typeof value) {
    case "string":
      to.push(text(value, path, "a text"));
      return;
    case "boolean":
    case "bigint":
      to.push(String(value));
      return;
    case "number":
      to.push(number(value));
      return;
    case "undefined":
      to.push("null");
      return;
    case "object":
      break;
    default:
      throw refused(path, `a ${typeof value}`);
  }
  if (value === null) {
    to.push("null");
    return;
  }
  if (path.length > DEEPEST) throw refused(path, `nested deeper than ${DEEPEST}, or in itself`);
  if (value instanceof ArrayBuffer || value instanceof Uint8Array) {
    to.push(`{"${BYTES}":"${base64(value)}"}`);
  } else if (Array.isArray(value)) {
    to.push("[");
    for (let index = 0; index < value.length; index += 1) {
      if (index > 0) to.push(",");
      writePart(index, value[index], path, to);
    }
    to.push("]");
  } else if (value instanceof Map) {
    writePairs(value, path, to);
  } else {
    // As in JSON, what is `undefined` is as if it were not there.
    const entries = entriesOf(value, path).filter(([, its]) => its !== undefined);
    if (entries.length === 1 && entries[0]?.[0].startsWith("$")) writePairs(entries, path, to);
    else writeObject(entries, path, to);
  }
}

function writeObject(
  entries: readonly [string, unknown][],
  path: (string | number)[],
  to: string[],
): void {
  to.push("{");
  entries.forEach(([key, its], index) => {
    to.push(index > 0 ? "," : "", text(key, path, "an object with a key"), ":");
    writePart(key, its, path, to);
  });
  to.push("}");
}

function writePairs(
  pairs: Iterable<[unknown, unknown]>,
  path: (string | number)[],
  to: string[],
): void {
  to.push(`{"${DICT}":[`);
  let isFirst = true;
  for (const [key, its] of pairs) {
    const shown = typeof key === "string" ? key : "a key";
    to.push(isFirst ? "[" : ",[");
    writePart(shown, key, path, to);
    to.push(",");
    writePart(shown, its, path, to);
    to.push("]");
    isFirst = false;
  }
  to.push("]}");
}

function writePart(
  key: string | number,
  its: unknown,
  path: (string | number)[],
  to: string[],
): void {
  path.push(key);
  write(its, path, to);
  path.pop();
}

function text(value: string, path: readonly (string | number)[], what: string): string {
  if (!value.isWellFormed()) throw refused(path, `${what} that has half of a surrogate pair`);
  return JSON.stringify(value);
}

function number(value: number): string {
  if (!Number.isFinite(value)) {
    const name = Number.isNaN(value) ? "nan" : value > 0 ? "inf" : "-inf";
    return `{"${FLOAT}":"${name}"}`;
  }
  if (Object.is(value, -0)) return "-0.0";
  const digits = String(value);
  // Without a point, it would be an integer of this many digits.
  const isLong = !Number.isSafeInteger(value) && /^-?\d+$/.test(digits);
  return isLong ? `${digits}.0` : digits;
}

function base64(value: ArrayBuffer | Uint8Array): string {
  const bytes = value instanceof ArrayBuffer ? new Uint8Array(value) : value;
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("base64");
}

/**
 * Reads JSON. An integer that a number cannot hold is a `bigint`, and a dict with other keys than
 * texts a `Map`.
 *
 * @throws {ProtocolError} it is none, or an integer has too many digits.
 */
export function decodeJson(json: Buffer): unknown {
  try {
    const all = json.toString("utf8");
    if (!all.includes('"$') && !LONG_INTEGER.test(all)) return JSON.parse(all) as unknown;
    const parser = new Parser(all);
    const value = parser.value(0);
    parser.finish();
    return value;
  } catch (error) {
    if (error instanceof ProtocolError) throw error;
    const shown = JSON.stringify(json.toString("utf8", 0, 40));
    throw new ProtocolError(`the node answered ${shown}, which is no JSON: ${String(error)}`);
  }
}

const SPACE = /[ \t\n\r]*/y;
const NUMBER = /-?(?:0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?/y;
const WORDS = [["true", true], ["false", false], ["null", null]] as const;

/** Reads what `JSON.parse` would round, or what stands for another value. */
class Parser {
  readonly #text: string;
  #at = 0;

  constructor(text: string) {
    this.#text = text;
  }

  finish(): void {
    this.#skip();
    if (this.#at < this.#text.length) throw this.#wrong();
  }

  value(depth: number): unknown {
    // Deeper than the node nests anything.
    if (depth > 10 * DEEPEST) throw new SyntaxError("it is nested too deep");
    this.#skip();
    switch (this.#text[this.#at]) {
      case "{":
        return this.#object(depth);
      case "[": {
        const items: unknown[] = [];
        this.#each("]", () => items.push(this.value(depth + 1)));
        return items;
      }
      case '"':
        return this.#string();
      default:
        return this.#scalar();
    }
  }

  #object(depth: number): unknown {
    const entries: [string, unknown][] = [];
    this.#each("}", () => {
      this.#skip();
      if (this.#text[this.#at] !== '"') throw this.#wrong();
      const key = this.#string();
      this.#skip();
      this.#take(":");
      entries.push([key, this.value(depth + 1)]);
    });
    const [first] = entries;
    return first && entries.length === 1 ? unmarked(...first) : objectOf(entries);
  }

  /** Reads what is between brackets, with commas between. */
  #each(end: string, read: () => void): void {
    this.#at += 1;
    this.#skip();
    if (this.#text[this.#at] !== end) {
      for (;;) {
        read();
        this.#skip();
        if (this.#text[this.#at] !== ",") break;
        this.#at += 1;
      }
    }
    this.#take(end);
  }

  #string(): string {
    const start = this.#at;
    let end = start + 1;
    for (;;) {
      const unit = this.#text.charCodeAt(end);
      if (Number.isNaN(unit)) throw this.#wrong();
      if (unit === 0x22) break;
      end += unit === 0x5c ? 2 : 1;
    }
    this.#at = end + 1;
    return JSON.parse(this.#text.slice(start, end + 1)) as string;
  }

  #scalar(): unknown {
    for (const [word, value] of WORDS) {
      if (this.#text.startsWith(word, this.#at)) {
        this.#at += word.length;
        return value;
      }
    }
    NUMBER.lastIndex = this.#at;
    const found = NUMBER.exec(this.#text);
    if (!found) throw this.#wrong();
    this.#at = NUMBER.lastIndex;
    const [digits, fraction, exponent] = found;
    const value = Number(digits);
    if (fraction ?? exponent) return value;
    if (Number.isSafeInteger(value)) return value;
    if (digits.length > MOST_DIGITS) {
      throw new SyntaxError(`an integer has ${digits.length} digits: limit ${MOST_DIGITS}`);
    }
    return BigInt(digits);
  }

  #skip(): void {
    SPACE.lastIndex = this.#at;
    SPACE.test(this.#text);
    this.#at = SPACE.lastIndex;
  }

  #take(character: string): void {
    if (this.#text[this.#at] !== character) throw this.#wrong();
    this.#at += 1;
  }

  #wrong(): SyntaxError {
    return new SyntaxError(`unexpected text at ${this.#at}`);
  }
}

/** Returns what an object with one member stands for. What is in it was looked at before. */
function unmarked(mark: string, held: unknown): unknown {
  if (mark === BYTES && typeof held === "string") {
    return new Uint8Array(Buffer.from(held, "base64"));
  }
  if (mark === FLOAT && typeof held === "string") {
    const value = NUMBERS[held];
    if (value === undefined) throw new SyntaxError(`\`${held}\` is no number`);
    return value;
  }
  if (mark === DICT && Array.isArray(held)) {
    const pairs = held as [unknown, unknown][];
    const areTexts = pairs.every(([key]) => typeof key === "string");
    return areTexts ? objectOf(pairs as [string, unknown][]) : new Map(pairs);
  }
  return objectOf([[mark, held]]);
}
