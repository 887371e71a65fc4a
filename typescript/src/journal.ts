// The files that sessions are recorded to.

import path from "node:path";

import { snake } from "./names.js";
import {
  checked,
  object,
  oneOf,
  seconds,
  type Shapes,
  text,
  textOr,
  whole,
  wrong,
} from "./shapes.js";
import { encode } from "./wire.js";

/** The file that a session is recorded to, and how. `docs/durable.md` says what is recorded. */
export interface Journal {
  /** The file. A relative one is relative to the program's directory. */
  path: string;
  /** `always`: the journal survives the end of the machine, and calls of tools wait for the disk.
   * `never`, the default: it survives the end of every process. */
  sync?: "never" | "always";
  /** The most bytes of the file, 1 GiB by default. `whenFull` says what happens past it. */
  maxBytes?: number;
  /** What happens to a run that needs a larger file: `end_session`, the default, or
   * `end_recording`: the session goes on, is recorded no longer, and the file is emptied. */
  whenFull?: "end_session" | "end_recording";
}

/** Where a replay stops; without any of them, at the end of the journal. */
export interface ReplayOptions {
  /** The number of a call of a tool, from 1 on: where it is made. */
  untilCall?: number;
  /** Seconds since the session began. */
  untilTime?: number;
  /** A line of any code, or of that in a file: before it. */
  untilLine?: number | readonly [file: string, line: number];
}

/** Where a run was stopped that is looked back at. */
export interface StoppedAt {
  /** The name of the function, `<module>` for code outside of functions. */
  readonly function: string;
  /** The line in its file or cell, from 1 on. */
  readonly line: number;
  /** The names of its local variables, sorted; none outside of functions. */
  readonly names: readonly string[];
}

const JOURNAL: Shapes<Journal> = {
  path: text,
  sync: oneOf("never", "always"),
  maxBytes: whole(),
  whenFull: oneOf("end_session", "end_recording"),
};
/** The shape of a journal, or of its path. */
export const journalShape = textOr(
  object(JOURNAL, ["path"]),
  "a path, or an object with a `path`",
);

const REPLAY: Shapes<ReplayOptions> = {
  untilCall: whole(),
  untilTime: seconds,
  untilLine: (value, place) => {
    const [file, line] = Array.isArray(value) ? (value as unknown[]) : ["", value];
    const isOne = typeof file === "string" && Number.isSafeInteger(line) && Number(line) >= 0;
    if (isOne && (!Array.isArray(value) || value.length === 2)) return;
    throw wrong(place, value, "the number of a line, or an array of a file and such a number");
  },
};

/**
 * Returns a journal, or that of a path, as `docs/reference/protocol.md` describes it.
 *
 * @throws {ConfigError} it is none.
 */
export function journalToWire(journal: Journal | string): Buffer {
  journalShape(journal, "journal");
  const given = typeof journal === "string" ? { path: journal } : journal;
  const entries = Object.entries(given).filter(([, value]) => value != null);
  const wire = Object.fromEntries(entries.map(([name, value]) => [snake(name), value]));
  return encode({ ...wire, path: path.resolve(given.path) }, "journal");
}

/**
 * Returns where a replay stops, as the server gets it.
 *
 * @throws {ConfigError} an option is unknown, or not what it has to be.
 */
export function replayToWire(options: ReplayOptions): Buffer {
  const entries = checked(options, REPLAY, "`replay`").map(([name, value]) => {
    const isLine = name === "untilLine" && typeof value === "number";
    return [snake(name), isLine ? [null, value] : value];
  });
  return encode(Object.fromEntries(entries), "replay");
}
