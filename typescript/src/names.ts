// Names in camel case here, and in snake case on the wire.

import { ConfigError } from "./errors.js";

/** Returns the name on the wire of one of this package's: `run_time` of `runTime`. */
export function snake(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

/**
 * Returns the entries of an object whose keys are all known.
 *
 * @throws {ConfigError} one is not.
 */
export function known(
  given: object,
  names: ReadonlySet<string>,
  what: string,
): [string, unknown][] {
  const entries = Object.entries(given).filter(([, value]) => value !== undefined);
  for (const [name] of entries) {
    if (!names.has(name)) {
      throw new ConfigError(`${what} has no key \`${name}\`; it has ${[...names].join(", ")}`);
    }
  }
  return entries;
}
