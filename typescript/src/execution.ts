// What a run did: `Execution` and its parts.

import { GuestError, GuestTimeoutError, TransferError } from "./errors.js";
import { inOwnWords } from "./names.js";

/** How code is read. */
export type Syntax = "python" | "command" | "ipython" | "shell";

/** How a run ended. */
export type Status =
  | "completed"
  | "submitted"
  | "raised"
  | "exited"
  | "timeout"
  | "limit"
  | "memory"
  | "interrupted"
  | "died";

/** An exception of the guest's code. All of it is text that the guest has chosen. */
export interface GuestException {
  /** The name of its class, such as `ValueError`. */
  readonly type: string;
  /** Its `str`. Of more than 65,536 characters, the end. */
  readonly message: string;
  /** Its arguments, or `null` if they are not JSON. */
  readonly args: readonly unknown[] | null;
  /** The traceback as Python prints it, with the guest's frames only. */
  readonly traceback: string;
  /** The exception that caused it. */
  readonly cause: GuestException | null;
}

/** What a run used. */
export interface Usage {
  /** Seconds from its start to its end. */
  readonly wallTime: number;
  /** The part of `wallTime` in which the guest waited for tools of the host, in seconds. */
  readonly hostTime: number;
  /** The highest memory of the session so far, without JavaScript's heap. */
  readonly peakMemoryBytes: number;
  /** Bytes written to the standard output, kept or not. */
  readonly stdoutBytes: number;
  /** Bytes written to the standard error, kept or not. */
  readonly stderrBytes: number;
  /** Calls of tools, in number. */
  readonly toolCalls: number;
}

/** How much of a run's results was left out because of limits. */
export interface Truncated {
  /** Bytes from the middle of the standard output. */
  readonly stdoutBytes: number;
  /** Bytes from the middle of the standard error. */
  readonly stderrBytes: number;
  /** Displays, in number: the last ones. */
  readonly displays: number;
  /** Entries of `files`. The files themselves are there. */
  readonly files: number;
  /** Entries of `locals`. */
  readonly locals: number;
}

/** How a session goes on after a run that has ended its interpreter: from its last checkpoint. */
export interface Restored {
  /** Runs whose changes are lost: this one, and those before it whose state was not kept yet. */
  readonly lostRuns: number;
}

/** A picture, table or other rich result: one object in one or several formats. */
export interface Display {
  readonly kind: "display";
  /**
   * The contents by MIME type, such as `image/png`, `text/html` and `text/plain`. Pictures are
   * bytes, other formats are texts. They come from the guest: HTML and SVG may contain anything.
   */
  readonly data: Readonly<Record<string, string | Uint8Array>>;
  /** Whether it is the value of the last expression. */
  readonly isResult: boolean;
}

/** Text that the guest wrote, as `Session.stream` yields it. */
export interface Output {
  readonly kind: "output";
  /** Where it wrote it. */
  readonly stream: "stdout" | "stderr";
  /** What it wrote: whole lines, or less of them. */
  readonly text: string;
}

/** A file that a run has made or changed. */
export interface WrittenFile {
  /** Its absolute path in the guest, for `Session.files`. */
  readonly path: string;
  /** In bytes. */
  readonly size: number;
}

/** An execution as `docs/reference/protocol.md` describes it. */
export interface WireExecution {
  status: string;
  value?: unknown;
  repr?: string;
  value_error?: string;
  hint?: string;
  exit_code?: number;
  system_exit?: WireException;
  exception?: WireException;
  termination?: { kind: string; message: string };
  stdout?: string;
  stderr?: string;
  displays?: WireDisplay[];
  files?: WrittenFile[];
  locals?: Record<string, string>;
  usage?: Record<string, number>;
  truncated?: Record<string, number>;
  session_alive?: boolean;
  restored?: { lost_runs?: number };
}

export interface WireDisplay {
  data: Record<string, string | Uint8Array>;
  is_result?: boolean;
}

interface WireException {
  type: string;
  message: string;
  args?: string | null;
  traceback?: string;
  cause?: WireException | null;
}

/**
 * What a run did. The result of `Session.run`.
 *
 * Look at `ok` or `status`, then at `value`, `stdout`, `error` and `displays`. `text` is all of
 * that for a model. `throwForError` throws if it failed.
 *
 * The guest chooses every text and value in it: treat them as untrusted.
 */
export class Execution {
  readonly kind = "execution";
  readonly #fields: WireExecution;

  /** `Session.run` makes it. */
  constructor(fields: WireExecution) {
    this.#fields = fields;
  }

  /**
   * How the run ended: `completed`; `submitted`, by `SUBMIT`; `raised` an exception; `exited`, by
   * `sys.exit` or as a script of the shell does. Or isolet ended it: `timeout`; `limit`, another
   * limit; `memory`, of JavaScript; `interrupted`; `died`, the interpreter has.
   */
  get status(): Status {
    const { status, termination } = this.#fields;
    return (status === "terminated" ? (termination?.kind ?? "died") : status) as Status;
  }

  /** Whether the run completed, submitted a result, or exited with status 0. */
  get ok(): boolean {
    const { status } = this.#fields;
    return status === "completed" || status === "submitted" || (status === "exited" && !this.exitCode);
  }

  /**
   * The value of the last expression, or what was submitted, as plain data; `null` if there is
   * none. If it could not cross, `valueError` says why.
   */
  get value(): unknown {
    return this.#fields.value ?? null;
  }

  /** The `repr` of the value in the guest, also of one that cannot cross; cut after 65,536. */
  get repr(): string | null {
    return this.#fields.repr ?? null;
  }

  /** Why the value could not cross, or `null` if it could. The run is `ok` all the same. */
  get valueError(): string | null {
    return this.#fields.value_error ?? null;
  }

  /** The status of `sys.exit`, or of a script of the shell; `null` if the run did not exit. */
  get exitCode(): number | null {
    return this.#fields.exit_code ?? null;
  }

  /** The `SystemExit` that the run exited by, with what `sys.exit` was given, or `null`. */
  get systemExit(): GuestException | null {
    return exception(this.#fields.system_exit);
  }

  /** The standard output, also of a run that failed. `truncated` says what was left out. */
  get stdout(): string {
    return this.#fields.stdout ?? "";
  }

  /** The standard error, without the traceback of `error`. */
  get stderr(): string {
    return this.#fields.stderr ?? "";
  }

  /** The pictures, tables and other rich results, in order, also of a run that failed. */
  get displays(): Display[] {
    return (this.#fields.displays ?? []).map(display);
  }

  /** The files that the run has made or changed. */
  get files(): WrittenFile[] {
    return this.#fields.files ?? [];
  }

  /** The exception, or `null` if the run raised none. */
  get error(): GuestException | null {
    return exception(this.#fields.exception);
  }

  /** Why isolet ended the run, with the limit, or `null` if it did not. */
  get reason(): string | null {
    const message = this.#fields.termination?.message;
    return message === undefined ? null : inOwnWords(message);
  }

  /** What went wrong in one line, or `null` if the run is `ok`. */
  get failure(): string | null {
    if (this.ok) return null;
    const error = this.#fields.exception;
    if (error) return error.message ? `${error.type}: ${error.message}` : error.type;
    return this.reason ?? `the run exited with status ${this.exitCode}`;
  }

  /** What helps, if a module was missing that a package has; `null` if nothing is known to. */
  get hint(): string | null {
    return this.#fields.hint ?? null;
  }

  /** The names that the run bound, each with the `repr` of its value, cut after 500 characters. */
  get locals(): Readonly<Record<string, string>> {
    return this.#fields.locals ?? {};
  }

  /** What the run used: seconds, bytes, calls. */
  get usage(): Usage {
    const { usage = {} } = this.#fields;
    return {
      wallTime: usage["wall_time"] ?? 0,
      hostTime: usage["host_time"] ?? 0,
      peakMemoryBytes: usage["peak_memory_bytes"] ?? 0,
      stdoutBytes: usage["stdout_bytes"] ?? 0,
      stderrBytes: usage["stderr_bytes"] ?? 0,
      toolCalls: usage["tool_calls"] ?? 0,
    };
  }

  /** How much was left out because of limits, or `null` if nothing was. */
  get truncated(): Truncated | null {
    const { truncated } = this.#fields;
    if (!truncated) return null;
    return {
      stdoutBytes: truncated["stdout_bytes"] ?? 0,
      stderrBytes: truncated["stderr_bytes"] ?? 0,
      displays: truncated["displays"] ?? 0,
      files: truncated["files"] ?? 0,
      locals: truncated["locals"] ?? 0,
    };
  }

  /** Whether the session can run more code. `Session.reset` makes one that cannot anew. */
  get sessionAlive(): boolean {
    return this.#fields.session_alive ?? true;
  }

  /** Set if the run ended the interpreter and the session goes on from its last checkpoint. */
  get restored(): Restored | null {
    const { restored } = this.#fields;
    return restored ? { lostRuns: restored.lost_runs ?? 1 } : null;
  }

  /**
   * What to show a model: the standard output and error, then the `repr` of the value, the
   * traceback, or why isolet ended the run.
   */
  get text(): string {
    const { exception: error } = this.#fields;
    const isNone = this.value === null && this.valueError === null;
    let last = isNone ? "" : (this.repr ?? "");
    if (error) last = error.traceback || (this.failure ?? "");
    else if (!this.ok) last = this.failure ?? "";
    const parts = [this.stdout, this.stderr, last].filter((part) => part !== "");
    return parts.map((part) => part.replace(/\n+$/, "")).join("\n");
  }

  /**
   * Returns the execution itself if it is `ok`.
   *
   * @throws {GuestTimeoutError} the run did not end in time.
   * @throws {GuestError} it failed in another way.
   */
  throwForError(): this {
    if (this.ok) return this;
    throw this.status === "timeout" ? new GuestTimeoutError(this) : new GuestError(this);
  }

  /** What `JSON.stringify` and `console.log` show: the fields as the protocol has them. */
  toJSON(): Readonly<Record<string, unknown>> {
    return { ...this.#fields };
  }
}

/**
 * Returns the value of a run.
 *
 * @throws {GuestError} the code failed. `GuestTimeoutError`: it did not end in time.
 * @throws {TransferError} the value cannot cross.
 */
export function valueOf(execution: Execution): unknown {
  const { value, valueError } = execution.throwForError();
  if (valueError !== null) throw new TransferError(valueError);
  return value;
}

/** Returns the display that the server has sent. */
export function display(wire: WireDisplay): Display {
  return { kind: "display", data: wire.data, isResult: wire.is_result ?? false };
}

function exception(wire: WireException | null | undefined): GuestException | null {
  if (!wire) return null;
  const { type, message, traceback = "" } = wire;
  return { type, message, args: listed(wire.args), traceback, cause: exception(wire.cause) };
}

function listed(text: string | null | undefined): readonly unknown[] | null {
  if (text == null) return null;
  try {
    const args: unknown = JSON.parse(text);
    return Array.isArray(args) ? args : null;
  } catch {
    return null;
  }
}
