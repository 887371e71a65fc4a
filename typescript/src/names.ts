// Names in camel case here, and in snake case on the wire.

import type { Journal, ReplayOptions } from "./journal.js";
import type { StreamOptions } from "./options.js";
import type { Limits, Policy } from "./policy.js";

type Option =
  | keyof Policy
  | keyof StreamOptions
  | keyof Journal
  | keyof ReplayOptions
  | `limits.${keyof Limits}`;

/** The options whose names differ on the wire. */
const OPTIONS = [
  "allowNet",
  "denyNet",
  "allowPublicNet",
  "caFiles",
  "allowEnv",
  "allowPackages",
  "startTime",
  "onAudit",
  "workingDirectory",
  "keepVariables",
  "allowReturn",
  "tableData",
  "chartPictures",
  "maxBytes",
  "whenFull",
  "untilCall",
  "untilTime",
  "untilLine",
  "limits.runTime",
  "limits.hostTime",
  "limits.memoryBytes",
  "limits.stdoutBytes",
  "limits.stderrBytes",
  "limits.valueBytes",
  "limits.sourceBytes",
  "limits.callBytes",
  "limits.displayBytes",
  "limits.outputLines",
  "limits.toolCalls",
  "limits.concurrentTools",
] as const satisfies readonly Option[];
const BY_WIRE: ReadonlyMap<string, string> = new Map(OPTIONS.map((name) => [snake(name), name]));

/** Returns the name on the wire of one of this package's: `run_time` of `runTime`. */
export function snake(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

/** Returns a text of the server with the options that it names as they are called here. */
export function inOwnWords(text: string): string {
  return text.replace(/`([a-z._]+)`/g, (all, name: string) => {
    const own = BY_WIRE.get(name);
    return own === undefined ? all : `\`${own}\``;
  });
}
