// The options of runs.

import type { Display, Output, Syntax } from "./execution.js";
import { snake } from "./names.js";
import {
  callback,
  checked,
  checkedObject,
  contents,
  flag,
  list,
  oneOf,
  seconds,
  type Shapes,
  signal,
  text,
  variables,
} from "./shapes.js";
import { encode, type Value } from "./wire.js";

/** The options of `Session.stream`. */
export interface StreamOptions {
  /** Variables that are set before. */
  inputs?: Readonly<Record<string, Value>>;
  /** The most seconds that the run may take, at most the limit `runTime`. Then the guest gets
   * `KeyboardInterrupt`, and the result has the status `timeout`, and the output so far. */
  timeout?: number;
  /** The standard input. */
  stdin?: string | Uint8Array;
  /** `sys.argv` after the name of the program. Without it, `sys.argv` stays as it is. */
  argv?: readonly string[];
  /** The name of the file in tracebacks, `<cell>` by default. */
  name?: string;
  /** The directory of the guest in which it runs, and later code too. */
  workingDirectory?: string;
  /** Whether to run it as `python FILE` does, without a value. */
  program?: boolean;
  /** Whether a program's variables stay in the session. Those of other code stay anyway. */
  keepVariables?: boolean;
  /** Whether `return` at the top level ends the code, with its value. */
  allowReturn?: boolean;
  /** How the code is read: `python` by default, `command` as by `python -c`, `ipython` as a cell of
   * a notebook, `shell` as by bash. */
  syntax?: Syntax;
  /** Whether displays of pandas' tables also have their data, by column. */
  tableData?: boolean;
  /** Whether displays of charts of plotly and altair also have a picture. */
  chartPictures?: boolean;
  /**
   * Interrupts the run when it is aborted, and ends the session if that does not help within the
   * limit `grace`. What is waited for then throws the signal's reason.
   */
  signal?: AbortSignal;
}

/** The options of `Session.goOn`. */
export interface OutputCallbacks {
  /** Called with each piece of the standard output as it is written. */
  onStdout?: (text: string) => void;
  /** The same for the standard error. */
  onStderr?: (text: string) => void;
  /** Called with each picture, table and other rich result. */
  onDisplay?: (display: Display) => void;
}

/** The options of `Session.run`. */
export interface RunOptions extends StreamOptions, OutputCallbacks {}

const CALLBACKS: Shapes<OutputCallbacks> = {
  onStdout: callback,
  onStderr: callback,
  onDisplay: callback,
};
const STREAM: Shapes<StreamOptions> = {
  inputs: variables,
  timeout: seconds,
  stdin: contents,
  argv: list(text),
  name: text,
  workingDirectory: text,
  program: flag,
  keepVariables: flag,
  allowReturn: flag,
  syntax: oneOf("python", "command", "ipython", "shell"),
  tableData: flag,
  chartPictures: flag,
  signal,
};
const RUN: Shapes<RunOptions> = { ...STREAM, ...CALLBACKS };

/** What stays here, or is an argument of its own. */
const APART: ReadonlySet<string> = new Set(["inputs", "signal", "onStdout", "onStderr", "onDisplay"]);

/**
 * Returns the options of a run as `docs/reference/protocol.md` describes them.
 *
 * @throws {ConfigError} one is unknown, or not what it has to be.
 */
export function optionsToWire(
  options: RunOptions,
  method: "run" | "stream",
): Record<string, unknown> {
  const wire: Record<string, unknown> = {};
  const shapes = method === "run" ? RUN : STREAM;
  for (const [name, value] of checked(options, shapes, `\`${method}\``)) {
    if (!APART.has(name)) wire[snake(name)] = value;
  }
  return wire;
}

/**
 * Returns the arguments of a run: its variables and what `optionsToWire` has returned.
 *
 * @throws {TransferError} a value cannot cross.
 */
export function argumentsOf(
  wire: Readonly<Record<string, unknown>>,
  inputs: RunOptions["inputs"],
  isStreamed: boolean,
): Buffer[] {
  const all = isStreamed ? { ...wire, stream: true } : wire;
  const hasOptions = Object.keys(all).length > 0;
  if (inputs == null && !hasOptions) return [];
  const encoded = encode(inputs, "inputs");
  return hasOptions ? [encoded, encode(all, "options")] : [encoded];
}

/** Splits options into those of a run and others. */
export function splitOptions<Options extends RunOptions>(
  options: Options,
): [RunOptions, Omit<Options, keyof RunOptions>] {
  const entries = Object.entries(checkedObject(options, "`run`"));
  const of = (isRun: boolean) =>
    Object.fromEntries(entries.filter(([name]) => Object.hasOwn(RUN, name) === isRun));
  return [of(true), of(false) as Omit<Options, keyof RunOptions>];
}

/**
 * Checks the options of `Session.goOn`.
 *
 * @throws {ConfigError} one is unknown, or no function.
 */
export function checkCallbacks(callbacks: OutputCallbacks): void {
  checked(callbacks, CALLBACKS, "`goOn`");
}

/** Returns whether anything is to be told while a run goes on. */
export function hasCallbacks({ onStdout, onStderr, onDisplay }: OutputCallbacks): boolean {
  return Boolean(onStdout ?? onStderr ?? onDisplay);
}

/** Tells of what a run has written or displayed. */
export function tell(item: Output | Display, callbacks: OutputCallbacks): void {
  if (item.kind === "display") callbacks.onDisplay?.(item);
  else (item.stream === "stderr" ? callbacks.onStderr : callbacks.onStdout)?.(item.text);
}
