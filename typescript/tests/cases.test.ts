// The cases that clients of all languages pass: `tests/clients/cases.json` of the repository.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

import * as isolet from "../src/index.js";

type Json = null | boolean | number | string | Json[] | { [key: string]: Json };

interface Case {
  name: string;
  policy?: Record<string, Json>;
  inputs?: Json;
  steps?: Step[];
  /** The class of the error of the first session. */
  refused?: string;
}

interface Step {
  /** The name of a copy. */
  in?: string;
  run?: string;
  eval?: string;
  sh?: string;
  stream?: string;
  inputs?: Json;
  options?: Record<string, Json>;
  expect?: Json;
  error?: string;
  get?: string;
  set?: Json;
  delete?: string;
  variables?: string[];
  put_file?: [string, string];
  get_file?: string;
  list_files?: Json;
  remove_file?: string;
  fork?: string;
  reset?: true;
  fresh?: true;
  close?: true;
}

const file = path.join(
  path.dirname(fileURLToPath(import.meta.url)),
  "../../../tests/clients/cases.json",
);
const cases = JSON.parse(readFileSync(file, "utf8")) as Case[];

/** The tools that a case may name. */
const TOOLS: Record<string, isolet.Tool> = {
  echo: isolet.tool({
    name: "echo",
    parameters: { type: "object", properties: { value: {} }, required: ["value"] },
    execute: (args) => args["value"],
  }),
  add: isolet.tool({
    name: "add",
    parameters: {
      type: "object",
      properties: { a: { type: "integer" }, b: { type: "integer" } },
      required: ["a", "b"],
    },
    execute: (args) => Number(args["a"]) + Number(args["b"]),
  }),
  fail: isolet.tool({
    name: "fail",
    parameters: { type: "object", properties: { text: { type: "string" } }, required: ["text"] },
    execute: (args) => {
      throw new isolet.ToolError("ValueError", String(args["text"]));
    },
  }),
};

const camel = (name: string) => name.replace(/_[a-z]/g, (part) => part.slice(1).toUpperCase());

function camelKeys(given: Record<string, Json>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(given).map(([name, value]) => [camel(name), value]));
}

/** Returns a value of a case: `$bytes`, `$float` and `$int` are what JSON lacks. */
function value(json: Json): isolet.Value {
  if (Array.isArray(json)) return json.map(value);
  if (typeof json !== "object" || json === null) return json;
  const [[kind, text] = []] = Object.entries(json);
  if (kind === "$bytes") return new Uint8Array(Buffer.from(String(text), "base64"));
  if (kind === "$float") return text === "inf" ? Infinity : -Infinity;
  if (kind === "$int") return BigInt(String(text));
  return Object.fromEntries(Object.entries(json).map(([key, its]) => [key, value(its)]));
}

function policy({ tools, submit, start_time: time, limits, ...rest }: Record<string, Json>) {
  const made: Record<string, unknown> = camelKeys(rest);
  if (tools) made["tools"] = (tools as string[]).map((name) => TOOLS[name]);
  if (submit) made["submit"] = { fields: submit };
  if (time) made["startTime"] = new Date(Number(time) * 1000);
  if (limits) made["limits"] = camelKeys(limits as Record<string, Json>);
  return made as isolet.SandboxOptions;
}

/** Returns what a case may ask of an execution, by the names that it has for it. */
function aspects(run: isolet.Execution): Record<string, unknown> {
  return {
    status: run.status,
    ok: run.ok,
    value: run.value,
    repr: run.repr,
    stdout: run.stdout,
    stderr: run.stderr,
    failure: run.failure,
    exit_code: run.exitCode,
    session_alive: run.sessionAlive,
    has_value_error: run.valueError !== null,
    is_truncated: run.truncated !== null,
    error_type: run.error?.type,
    error_args: run.error?.args,
    error_cause: run.error?.cause?.type,
    written: run.files.map((written) => [written.path, written.size]),
    displays: run.displays.map(({ data, isResult }) => ["text/html", data["text/html"], isResult]),
  };
}

class Run {
  readonly #sandbox: isolet.Sandbox;
  readonly #sessions = new Map<string, isolet.Session>();
  readonly #remembered = new Map<string, unknown>();

  constructor(sandbox: isolet.Sandbox) {
    this.#sandbox = sandbox;
  }

  async open(inputs: Json | undefined): Promise<void> {
    const options = inputs === undefined ? {} : { inputs: value(inputs) as never };
    this.#sessions.set("", await this.#sandbox.session(options));
  }

  async close(): Promise<void> {
    for (const session of this.#sessions.values()) await session.close();
  }

  async step(step: Step): Promise<void> {
    const session = this.#sessions.get(step.in ?? "");
    assert.ok(session);
    const options = camelKeys(step.options ?? {}) as isolet.RunOptions;
    if (step.inputs !== undefined) options.inputs = value(step.inputs) as never;
    if (step.run !== undefined) return this.#check(await session.run(step.run, options), step);
    if (step.sh !== undefined) return this.#check(await session.sh(step.sh, options), step);
    if (step.eval !== undefined) return this.#same(await session.eval(step.eval, options), step);
    if (step.stream !== undefined) return await this.#stream(session, step.stream, step);
    if (step.get !== undefined) return this.#same(await session.get(step.get), step);
    if (step.set !== undefined) return await session.set(value(step.set) as never);
    if (step.delete !== undefined) return this.#same(await session.delete(step.delete), step);
    if (step.variables) {
      const names = (await session.variables()).map(({ name }) => name);
      return assert.deepEqual(names.toSorted(), step.variables);
    }
    if (step.put_file) return await session.files.put(...step.put_file);
    if (step.get_file !== undefined) {
      return this.#same((await session.files.text(step.get_file)) ?? null, step);
    }
    if (step.list_files) {
      const found = (await session.files.list()).map(({ name, isDir }) => [name, isDir]);
      return assert.deepEqual(found, step.list_files);
    }
    if (step.remove_file) return this.#same(await session.files.remove(step.remove_file), step);
    if (step.fork) this.#sessions.set(step.fork, await session.fork());
    else if (step.reset) await session.reset();
    else if (step.close) await session.close();
    else if (step.fresh) {
      await session.close();
      await this.open(undefined);
    } else assert.fail(`an unknown step: ${JSON.stringify(step)}`);
  }

  #same(found: unknown, { expect }: Step): void {
    if (expect !== undefined) assert.deepEqual(found, value(expect));
  }

  async #stream(session: isolet.Session, code: string, step: Step): Promise<void> {
    const heard: string[] = [];
    for await (const item of session.stream(code)) {
      if (item.kind === "output") heard.push(`${item.stream}:${item.text}`);
      else heard.push(item.kind === "display" ? "display" : `value:${String(item.value)}`);
    }
    assert.deepEqual(heard, step.expect);
  }

  #check(run: isolet.Execution, { expect }: Step): void {
    const found = aspects(run);
    for (const [name, wanted] of Object.entries((expect ?? {}) as Record<string, Json>)) {
      const shown = `${name} of ${run.text}`;
      if (name === "remember") this.#remembered.set(String(wanted), run.value);
      else if (name === "equals") {
        assert.deepEqual(run.value, this.#remembered.get(String(wanted)), shown);
      } else if (name === "failure_has") assert.ok(run.failure?.includes(String(wanted)), shown);
      else if (name === "traceback_has") {
        assert.ok(run.error?.traceback.includes(String(wanted)), shown);
      } else {
        assert.ok(name in found, name);
        assert.deepEqual(found[name], value(wanted), shown);
      }
    }
  }
}

/** Requires that this is an error of the class. */
function isError(error: unknown, name: string): void {
  assert.ok(error instanceof Error && !(error instanceof assert.AssertionError), String(error));
  if (name !== "any") assert.equal(error.name, name, error.message);
}

for (const { name, policy: given = {}, inputs, steps = [], refused } of cases) {
  test(`case: ${name}`, async () => {
    let run: Run | undefined;
    try {
      run = new Run(new isolet.Sandbox(policy(given)));
      await run.open(inputs);
    } catch (error) {
      if (refused === undefined) throw error;
      return isError(error, refused);
    }
    assert.equal(refused, undefined);
    try {
      for (const step of steps) {
        if (step.error === undefined) {
          await run.step(step);
          continue;
        }
        let thrown: unknown;
        await run.step(step).catch((error: unknown) => {
          thrown = error;
        });
        isError(thrown, step.error);
      }
    } finally {
      await run.close();
    }
  });
}
