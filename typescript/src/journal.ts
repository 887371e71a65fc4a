// The files that sessions are recorded to.

import path from "node:path";

import { known, snake } from "./names.js";
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

const JOURNAL: ReadonlySet<string> = new Set([
  "path",
  "sync",
  "maxBytes",
  "whenFull",
] satisfies readonly (keyof Journal)[]);
const REPLAY: ReadonlySet<string> = new Set([
  "untilCall",
  "untilTime",
  "untilLine",
] satisfies readonly (keyof ReplayOptions)[]);

/** Returns a journal, or that of a path, as `docs/reference/protocol.md` describes it. */
export function journalToWire(journal: Journal | string): Buffer {
  const given = typeof journal === "string" ? { path: journal } : journal;
  const entries = known(given, JOURNAL, "a journal").map(([name, value]) => [snake(name), value]);
  const wire = Object.fromEntries(entries) as Record<string, unknown>;
  return encode({ ...wire, path: path.resolve(given.path) }, "journal");
}

/** Returns where a replay stops, as the server gets it. */
export function replayToWire(options: ReplayOptions): Buffer {
  const entries = known(options, REPLAY, "`replay`").map(([name, value]) => {
    const isLine = name === "untilLine" && typeof value === "number";
    return [snake(name), isLine ? [null, value] : value];
  });
  return encode(Object.fromEntries(entries), "replay");
}
