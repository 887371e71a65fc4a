/**
 * Runs Python that nobody has reviewed: full CPython in a locked-down process.
 *
 * ```ts
 * import { run, Sandbox } from "isolet";
 *
 * (await run("40 + x", { inputs: { x: 2 } })).value; // 42
 * ```
 *
 * The code may compute, and nothing else, unless a policy allows it. A session keeps its variables.
 *
 * @module
 */

import { Sandbox, type SandboxOptions } from "./sandbox.js";
import type { Execution } from "./execution.js";
import { splitOptions, type RunOptions } from "./options.js";

export {
  AssetsError,
  BusyError,
  ConfigError,
  GuestError,
  GuestTimeoutError,
  IsoletError,
  JournalError,
  LimitError,
  PackagesError,
  ProtocolError,
  ServerDiedError,
  SessionClosedError,
  StartError,
  TransferError,
} from "./errors.js";
export {
  type Display,
  Execution,
  type GuestException,
  type Output,
  type Restored,
  type Status,
  type Syntax,
  type Truncated,
  type Usage,
  type WrittenFile,
} from "./execution.js";
export type { AuditEvent, Limits, Mount, Policy, Secret, Submit } from "./policy.js";
export { Sandbox, type SandboxOptions, type SessionOptions } from "./sandbox.js";
export type { JsonSchema, StandardSchema } from "./schema.js";
export { Server, type ServerOptions } from "./server.js";
export { type FileEntry, Files } from "./files.js";
export type { Journal, ReplayOptions, StoppedAt } from "./journal.js";
export type { OutputCallbacks, RunOptions, StreamOptions } from "./options.js";
export { type Package, Session, type Variable } from "./session.js";
export { type CallContext, type Tool, tool, ToolError, type ToolOptions, type Tools } from "./tools.js";
export type { Value } from "./wire.js";

/** Runs code in a fresh session, which ends with it. The options are those of both. */
export async function run(
  code: string,
  options: SandboxOptions & RunOptions = {},
): Promise<Execution> {
  const [ofRun, policy] = splitOptions(options);
  return await new Sandbox(policy).run(code, ofRun);
}
