// What options have to be, and the errors about those that are not.

import { ConfigError } from "./errors.js";

/** Checks a value. `place` names the option in errors: `limits.runTime`, `allowNet[0]`. */
export type Shape = (value: unknown, place: string) => void;

/** The shapes of an object's values, one for each of its keys. */
export type Shapes<Type> = { readonly [Key in keyof Required<Type>]: Shape };

const MOST_SHOWN = 60;
const U64 = 2n ** 64n - 1n;
/** What the server can take of seconds, in 64 bits. */
const SECONDS = 2 ** 64;
/** The longest limit, 100 years. */
const LONGEST = 3_153_600_000;

/** `true` or `false`. */
export const flag: Shape = (value, place) => {
  if (typeof value !== "boolean") throw wrong(place, value, "true or false");
};

export const text: Shape = (value, place) => {
  if (typeof value !== "string") throw wrong(place, value, "a text");
};

/** A text that errors do not show. */
export const secret: Shape = (value, place) => {
  if (typeof value === "string") return;
  throw new ConfigError(`\`${place}\` is ${kindOf(value)}, and has to be a text`);
};

/** A text or bytes. */
export const contents: Shape = (value, place) => {
  const isBytes = value instanceof Uint8Array || value instanceof ArrayBuffer;
  if (typeof value !== "string" && !isBytes) throw wrong(place, value, "a text or bytes");
};

export const callback: Shape = (value, place) => {
  if (typeof value !== "function") throw wrong(place, value, "a function");
};

export const signal: Shape = (value, place) => {
  const isOne = typeof value === "object" && value !== null && "throwIfAborted" in value;
  if (!isOne) throw wrong(place, value, "an AbortSignal");
};

export const date: Shape = (value, place) => {
  if (value instanceof Date && !Number.isNaN(value.getTime())) return;
  throw wrong(place, value, "a Date that is valid");
};

/** A time, 0 or more. */
export const seconds: Shape = (value, place) => {
  if (typeof value === "number" && value >= 0 && value < SECONDS) return;
  throw wrong(place, value, "a number of seconds, 0 or more and less than 2^64");
};

/** The time of a limit that is more than nothing, and no more than the server takes. */
export const limitSeconds: Shape = (value, place) => {
  if (typeof value === "number" && value > 0 && value <= LONGEST) return;
  throw wrong(place, value, `a number of seconds, more than 0 and at most ${LONGEST}`);
};

/** The same for one that may be nothing. */
export const graceSeconds: Shape = (value, place) => {
  if (typeof value === "number" && value >= 0 && value <= LONGEST) return;
  throw wrong(place, value, `a number of seconds, 0 or more and at most ${LONGEST}`);
};

/** A whole number of 64 bits, of which `least` is the smallest that makes sense. */
export function whole(least = 0): Shape {
  return (value, place) => {
    const isExact = Number.isSafeInteger(value) || typeof value === "bigint";
    if (isExact && (value as number | bigint) >= least && (value as number | bigint) <= U64) return;
    const isLarge = typeof value === "number" && value > Number.MAX_SAFE_INTEGER && value < SECONDS;
    const expected = `a whole number, ${least} or more and less than 2^64`;
    const hint = "past 2^53 numbers are not exact: pass a bigint";
    throw wrong(place, value, expected, isLarge ? hint : null);
  };
}

/** One of these texts. */
export function oneOf(...values: readonly string[]): Shape {
  const shown = values.map((value) => JSON.stringify(value));
  const expected = `${shown.slice(0, -1).join(", ")} or ${shown.at(-1)}`;
  return (value, place) => {
    if (!values.includes(value as string)) throw wrong(place, value, expected);
  };
}

/** An array of these. */
export function list(of: Shape, what = "texts"): Shape {
  return (value, place) => {
    if (!Array.isArray(value)) throw wrong(place, value, `an array of ${what}`);
    value.forEach((each, at) => of(each, `${place}[${at}]`));
  };
}

/** An object with any keys, whose values are these. */
export function byKey(of: Shape, what: string): Shape {
  return (value, place) => {
    if (!isObject(value)) throw wrong(place, value, `an object of ${what}`);
    for (const [key, each] of Object.entries(value)) {
      if (each !== undefined) of(each, `${place}[${JSON.stringify(key)}]`);
    }
  };
}

/** Variables by their names. What is in them is checked when it crosses. */
export const variables: Shape = (value, place) => {
  if (!isObject(value)) throw wrong(place, value, "an object of variables by name");
};

/** An object with keys of its own. */
export function object<Type>(
  shapes: Shapes<Type>,
  needed: readonly (keyof Type & string)[] = [],
): Shape {
  return (value, place) => {
    if (!isObject(value)) throw wrong(place, value, "an object");
    entriesOf(value, shapes, `\`${place}\``, `${place}.`);
    for (const key of needed) {
      if (value[key] !== undefined && value[key] !== null) continue;
      throw new ConfigError(`\`${place}\` has no \`${key}\`, and has to have one`);
    }
  };
}

/** Either of two shapes, of which the first is for texts. */
export function textOr(other: Shape, expected: string): Shape {
  return (value, place) => {
    if (typeof value === "string") return;
    if (!isObject(value)) throw wrong(place, value, expected);
    other(value, place);
  };
}

/** An object, of which errors show nothing if it is none. */
export function secretly(of: Shape, expected: string): Shape {
  return (value, place) => {
    if (isObject(value)) return of(value, place);
    throw new ConfigError(`\`${place}\` is ${kindOf(value)}, and has to be ${expected}`);
  };
}

/** Whatever it is, it is checked elsewhere. */
export const unchecked: Shape = () => {};

/**
 * Returns the options that are given, each as it has to be. One that is `null` is as if left out.
 *
 * @param what they are those of, such as "`run`".
 * @throws {ConfigError} one is unknown, or not what it has to be.
 */
export function checked<Type>(
  given: object,
  shapes: Shapes<Type>,
  what: string,
): [keyof Type & string, unknown][] {
  return entriesOf(given, shapes, what, "");
}

/**
 * Returns options that are an object.
 *
 * @throws {ConfigError} they are none.
 */
export function checkedObject<Type>(given: Type, what: string): Type & object {
  if (isObject(given)) return given;
  throw new ConfigError(`the options of ${what} are ${shown(given)}, and have to be an object`);
}

function entriesOf<Type>(
  given: unknown,
  shapes: Shapes<Type>,
  what: string,
  prefix: string,
): [keyof Type & string, unknown][] {
  const entries = Object.entries(checkedObject(given, what)).filter(([, value]) => value != null);
  for (const [name, value] of entries) {
    if (!Object.hasOwn(shapes, name)) {
      const known = Object.keys(shapes).join(", ");
      throw new ConfigError(`${what} has no key \`${name}\`; it has ${known}`);
    }
    shapes[name as keyof Type](value, `${prefix}${name}`);
  }
  return entries as [keyof Type & string, unknown][];
}

/** Returns the error for a value that is not what it has to be. */
export function wrong(
  place: string,
  value: unknown,
  expected: string,
  hint?: string | null,
): ConfigError {
  return new ConfigError(`\`${place}\` is ${shown(value)}, and has to be ${expected}`, hint);
}

function isObject(value: unknown): value is Record<string, unknown> {
  const isOne = typeof value === "object" && value !== null && !Array.isArray(value);
  return isOne && !(value instanceof Uint8Array) && !(value instanceof ArrayBuffer);
}

/** Returns a value as an error shows it: short, and without a look into objects. */
function shown(value: unknown): string {
  switch (typeof value) {
    case "string": {
      const short = value.length > MOST_SHOWN ? `${value.slice(0, MOST_SHOWN)}…` : value;
      return JSON.stringify(short.toWellFormed());
    }
    case "number":
      return Object.is(value, -0) ? "-0" : String(value);
    case "bigint": {
      const digits = String(value);
      return digits.length > MOST_SHOWN ? `${digits.slice(0, MOST_SHOWN)}…n` : `${digits}n`;
    }
    case "boolean":
      return String(value);
    default:
      return kindOf(value);
  }
}

function kindOf(value: unknown): string {
  if (value === null || value === undefined) return String(value);
  if (Array.isArray(value)) return "an array";
  if (value instanceof Date) return Number.isNaN(value.getTime()) ? "an invalid Date" : "a Date";
  if (typeof value !== "object") return `a ${typeof value}`;
  const { constructor } = value as { constructor?: { name?: unknown } };
  const name = constructor?.name;
  const isPlain = typeof name !== "string" || name === "" || name === "Object";
  return isPlain ? "an object" : `an object of the class ${name.slice(0, MOST_SHOWN)}`;
}
