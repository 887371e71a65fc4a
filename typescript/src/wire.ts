// Values as they cross between this program and the server: Python's `marshal` format, version 2.

import { ProtocolError, TransferError } from "./errors.js";

/** What crosses: plain data. A `Map` is a dict with any keys, a `bigint` an integer of any size. */
export type Value =
  | null
  | undefined
  | boolean
  | number
  | bigint
  | string
  | Uint8Array
  | ArrayBuffer
  | readonly Value[]
  | ReadonlyMap<Value, Value>
  | { readonly [key: string]: Value };

/** The deepest nesting of a value that crosses. */
export const DEEPEST = 200;

/** The bits of a digit of a long integer. */
const DIGIT = 15n;

/** The codes of the types. */
const NONE = 0x4e; // N
const TRUE = 0x54; // T
const FALSE = 0x46; // F
const INT = 0x69; // i
const LONG = 0x6c; // l
const FLOAT = 0x67; // g
const TEXT = 0x75; // u
const BYTES = 0x73; // s
const LIST = 0x5b; // [
const DICT = 0x7b; // {
const END = 0x30; // 0

/** The most bytes of UTF-8 for each unit of a text. */
const UTF8 = 3;

/**
 * Returns the encoding of a value.
 *
 * @param value what crosses.
 * @param name what the value is, for errors.
 * @throws {TransferError} it is no plain data. The message names the place.
 */
export function encode(value: unknown, name: string): Buffer {
  const writer = new Writer();
  writer.value(value, [name]);
  return writer.bytes();
}

/** Returns the beginning of a frame with the list of these parts: its length, and that it is one. */
export function frame(parts: readonly Buffer[]): Buffer {
  const head = Buffer.allocUnsafe(9);
  head.writeUInt32LE(parts.reduce((all, part) => all + part.length, 5), 0);
  head[4] = LIST;
  head.writeInt32LE(parts.length, 5);
  return head;
}

class Writer {
  #buffer = Buffer.allocUnsafe(256);
  #size = 0;

  bytes(): Buffer {
    return this.#buffer.subarray(0, this.#size);
  }

  value(value: unknown, path: (string | number)[]): void {
    switch (typeof value) {
      case "string":
        return this.#text(value, path, "a text");
      case "boolean":
        return this.#code(value ? TRUE : FALSE);
      case "number":
        return this.#number(value);
      case "bigint":
        return this.#long(value);
      case "undefined":
        return this.#code(NONE);
      case "object":
        break;
      default:
        throw refused(path, `a ${typeof value}`);
    }
    if (value === null) return this.#code(NONE);
    if (path.length > DEEPEST) throw refused(path, `nested deeper than ${DEEPEST}, or in itself`);
    if (Array.isArray(value)) return this.#list(value, path);
    if (value instanceof Uint8Array) return this.#data(value);
    if (value instanceof ArrayBuffer) return this.#data(new Uint8Array(value));
    if (value instanceof Map) return this.#map(value, path);
    this.#code(DICT);
    for (const [key, its] of entriesOf(value, path)) {
      // As in JSON, it is as if it were not there.
      if (its === undefined) continue;
      this.#text(key, path, "an object with a key");
      this.#part(key, its, path);
    }
    this.#code(END);
  }

  #part(key: string | number, its: unknown, path: (string | number)[]): void {
    path.push(key);
    this.value(its, path);
    path.pop();
  }

  #list(values: readonly unknown[], path: (string | number)[]): void {
    this.#code(LIST);
    this.#int(values.length);
    for (let index = 0; index < values.length; index += 1) this.#part(index, values[index], path);
  }

  #map(values: ReadonlyMap<unknown, unknown>, path: (string | number)[]): void {
    this.#code(DICT);
    for (const [key, its] of values) {
      const shown = typeof key === "string" ? key : "a key";
      this.#part(shown, key, path);
      this.#part(shown, its, path);
    }
    this.#code(END);
  }

  #number(value: number): void {
    if (!Number.isSafeInteger(value) || Object.is(value, -0)) {
      this.#code(FLOAT);
      this.#reserve(8);
      this.#size = this.#buffer.writeDoubleLE(value, this.#size);
    } else if (value === (value | 0)) {
      this.#code(INT);
      this.#int(value);
    } else {
      this.#long(BigInt(value));
    }
  }

  #long(value: bigint): void {
    const digits: number[] = [];
    const mask = (1n << DIGIT) - 1n;
    for (let rest = value < 0n ? -value : value; rest > 0n; rest >>= DIGIT) {
      digits.push(Number(rest & mask));
    }
    this.#code(LONG);
    this.#int(value < 0n ? -digits.length : digits.length);
    this.#reserve(2 * digits.length);
    for (const digit of digits) this.#size = this.#buffer.writeUInt16LE(digit, this.#size);
  }

  #text(value: string, path: readonly (string | number)[], what: string): void {
    if (!value.isWellFormed()) throw refused(path, `${what} that has half of a surrogate pair`);
    this.#code(TEXT);
    // The length comes before, and is known after.
    this.#reserve(4 + UTF8 * value.length);
    const length = this.#buffer.write(value, this.#size + 4);
    this.#int(length);
    this.#size += length;
  }

  #data(value: Uint8Array): void {
    this.#code(BYTES);
    this.#int(value.length);
    this.#reserve(value.length);
    this.#buffer.set(value, this.#size);
    this.#size += value.length;
  }

  #code(code: number): void {
    this.#reserve(1);
    this.#buffer[this.#size] = code;
    this.#size += 1;
  }

  #int(value: number): void {
    this.#reserve(4);
    this.#size = this.#buffer.writeInt32LE(value, this.#size);
  }

  #reserve(more: number): void {
    const needed = this.#size + more;
    if (needed <= this.#buffer.length) return;
    const larger = Buffer.allocUnsafe(Math.max(needed, 2 * this.#buffer.length));
    this.#buffer.copy(larger, 0, 0, this.#size);
    this.#buffer = larger;
  }
}

/**
 * Returns the entries of a plain object.
 *
 * @throws {TransferError} it is of a class.
 */
export function entriesOf(value: object, path: readonly (string | number)[]): [string, unknown][] {
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype !== Object.prototype && prototype !== null) {
    const made = (value as { constructor?: { name?: string } }).constructor?.name;
    throw refused(path, `an object of the class ${made ?? "without a name"}`);
  }
  return Object.entries(value);
}

/** Returns the error for a value that cannot cross, by the keys on the way to it. */
export function refused(path: readonly (string | number)[], what: string): TransferError {
  const [name, ...keys] = path;
  const place = keys.slice(0, 8).map((key) => `[${JSON.stringify(key)}]`);
  const rest = keys.length > 8 ? "…" : "";
  return new TransferError(
    `\`${name}${place.join("")}${rest}\` is ${what}, which cannot cross`,
    "pass null, booleans, numbers, bigints, texts, bytes, and arrays, plain objects and maps of them",
  );
}

/** Returns the plain object with these entries. */
export function objectOf(entries: Iterable<readonly [string, unknown]>): Record<string, unknown> {
  const made: Record<string, unknown> = {};
  for (const [key, value] of entries) {
    // A guest may choose this name, and an assignment would set what the object inherits.
    if (key === "__proto__") {
      const own = { value, writable: true, enumerable: true, configurable: true };
      Object.defineProperty(made, key, own);
    } else {
      made[key] = value;
    }
  }
  return made;
}

/**
 * Returns the value of a frame from the server. An integer that a number cannot hold is a `bigint`,
 * and a dict with other keys than texts a `Map`.
 *
 * @throws {ProtocolError} it is none.
 */
export function decode(bytes: Buffer): unknown {
  const reader = new Reader(bytes);
  const value = reader.value(0);
  reader.finish();
  return value;
}

class Reader {
  readonly #bytes: Buffer;
  #at = 0;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  finish(): void {
    if (this.#at !== this.#bytes.length) throw this.#wrong("has bytes after its end");
  }

  value(depth: number): unknown {
    // Deeper than the server nests anything.
    if (depth > 10 * DEEPEST) throw this.#wrong("is nested too deep");
    const code = this.#bytes[this.#take(1)];
    switch (code) {
      case NONE:
        return null;
      case TRUE:
        return true;
      case FALSE:
        return false;
      case INT:
        return this.#int();
      case LONG:
        return this.#long();
      case FLOAT:
        return this.#bytes.readDoubleLE(this.#take(8));
      case TEXT: {
        const size = this.#size();
        const start = this.#take(size);
        return this.#bytes.toString("utf8", start, start + size);
      }
      case BYTES: {
        const size = this.#size();
        const start = this.#take(size);
        // A copy: the frame is not kept for it.
        return new Uint8Array(this.#bytes.subarray(start, start + size));
      }
      case LIST: {
        const values: unknown[] = [];
        for (let left = this.#size(); left > 0; left -= 1) values.push(this.value(depth + 1));
        return values;
      }
      case DICT:
        return this.#dict(depth);
      default:
        throw this.#wrong(`has a value of the unknown type ${code}`);
    }
  }

  #dict(depth: number): unknown {
    const items: [unknown, unknown][] = [];
    let areTexts = true;
    while (this.#bytes[this.#at] !== END) {
      const key = this.value(depth + 1);
      areTexts &&= typeof key === "string";
      items.push([key, this.value(depth + 1)]);
    }
    this.#at += 1;
    return areTexts ? objectOf(items as [string, unknown][]) : new Map(items);
  }

  #long(): number | bigint {
    const count = this.#int();
    const digits = Math.abs(count);
    const start = this.#take(2 * digits);
    let whole = 0n;
    for (let digit = digits - 1; digit >= 0; digit -= 1) {
      whole = (whole << DIGIT) | BigInt(this.#bytes.readUInt16LE(start + 2 * digit));
    }
    if (count < 0) whole = -whole;
    const number = Number(whole);
    return Number.isSafeInteger(number) ? number : whole;
  }

  #size(): number {
    const size = this.#int();
    if (size < 0) throw this.#wrong(`has a part of ${size} bytes`);
    return size;
  }

  #int(): number {
    return this.#bytes.readInt32LE(this.#take(4));
  }

  #take(size: number): number {
    const start = this.#at;
    if (start + size > this.#bytes.length) throw this.#wrong("ends too soon");
    this.#at += size;
    return start;
  }

  #wrong(what: string): ProtocolError {
    return new ProtocolError(`a message of ${this.#bytes.length} bytes ${what}`);
  }
}
