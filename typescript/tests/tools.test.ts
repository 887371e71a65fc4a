// Tools: functions of this program that guests call.

import assert from "node:assert/strict";
import { AsyncLocalStorage } from "node:async_hooks";
import { test } from "node:test";

import { type } from "arktype";
import * as v from "valibot";
import { z } from "zod";

import { Sandbox, tool, ToolError, type JsonSchema } from "../src/index.js";

test("a function gets what the guest passes, and its answer or exception goes back", async () => {
  const failing = () => {
    throw new RangeError("too much");
  };
  class OwnError extends Error {
    override name = "OwnError";
  }
  const sandbox = new Sandbox({
    tools: {
      join: (...parts: string[]) => parts.join("-"),
      later: async (n: number) => await Promise.resolve(n + 1),
      failing,
      own: () => {
        throw new OwnError("mine");
      },
      key: () => {
        throw new ToolError("KeyError", "k");
      },
      strange: () => new Date(0),
    },
  });
  await using session = await sandbox.session();
  assert.deepEqual(await session.eval("[join('a', 'b'), later(1)]"), ["a-b", 2]);
  const caught = `
def of(f):
    try: f()
    except Exception as error: return [type(error).__name__, str(error)]
[of(failing), of(own), of(key), of(strange)]`;
  const [ranged, own, key, strange] = (await session.eval(caught)) as [string, string][];
  assert.deepEqual([ranged, own], [["ValueError", "too much"], ["OwnError", "mine"]]);
  assert.equal(key?.[0], "KeyError");
  assert.match(String(strange?.[1]), /`strange\(\)` is an object of the class Date/);
});

const described: JsonSchema = {
  type: "object",
  properties: {
    query: { type: "string", description: "What to look for." },
    limit: { type: "integer", default: 10 },
    lang: { enum: ["en", "de"] },
  },
  required: ["query"],
};

test("a JSON schema gives a tool parameters, types, defaults and documentation", async () => {
  const seen: unknown[] = [];
  const search = tool({
    name: "search",
    description: "Searches the corpus.",
    parameters: described,
    returns: { type: "array", items: { type: "string" } },
    execute: (args, { callId, signal }) => {
      seen.push([args, typeof callId, signal.aborted]);
      return [String(args["query"])];
    },
  });
  await using session = await new Sandbox({ tools: [search] }).session();
  assert.deepEqual(await session.eval("search('cats') + search('dogs', limit=3, lang='de')"), [
    "cats",
    "dogs",
  ]);
  assert.deepEqual(seen, [
    [{ query: "cats", limit: 10 }, "number", false],
    [{ query: "dogs", limit: 3, lang: "de" }, "number", false],
  ]);
  assert.equal((await session.run("search(1)")).error?.type, "TypeError");
  assert.equal((await session.run("search('a', lang='fr')")).ok, false);
  const help = await session.run("help(search)");
  assert.match(help.stdout, /search\(query: str, limit: int = 10[\s\S]*Searches the corpus\./);
});

for (const [library, schema] of [
  ["zod", z.object({ query: z.string().min(2), limit: z.number().int().default(10) })],
  ["arktype", type({ query: "string >= 2", limit: "number.integer = 10" })],
  [
    "valibot",
    v.object({
      query: v.pipe(v.string(), v.minLength(2)),
      limit: v.optional(v.pipe(v.number(), v.integer()), 10),
    }),
  ],
] as const) {
  test(`a schema of ${library} checks the arguments and completes them`, async () => {
    const search = tool({
      name: "search",
      parameters: schema,
      // The types come from the schema.
      execute: ({ query, limit }) => query.repeat(limit),
    });
    await using session = await new Sandbox({ tools: [search] }).session();
    assert.equal(await session.eval("search(query='ab', limit=2)"), "abab");
    assert.equal(await session.eval("search('ab')"), "ab".repeat(10));
    const wrong = await session.run("search('a')");
    assert.ok(wrong.error?.type === "TypeError" || wrong.error?.type === "ValueError", wrong.text);
    assert.equal((await session.run("search('ab', limit='x')")).ok, false);
    assert.equal((await session.run("search('ab', other=1)")).error?.type, "TypeError");
  });
}

test("calls come at the same time, run where their run was begun, and hear when they are over", async () => {
  const context = new AsyncLocalStorage<string>();
  let release = () => {};
  const both = new Promise<void>((resolve) => {
    release = resolve;
  });
  let arrived = 0;
  let aborted = () => {};
  const isAborted = new Promise<void>((resolve) => {
    aborted = resolve;
  });
  const meet = tool({
    name: "meet",
    style: "async",
    execute: async () => {
      arrived += 1;
      if (arrived === 2) release();
      await both;
      return context.getStore();
    },
  });
  const hang = tool({
    name: "hang",
    style: "async",
    execute: (_, { signal }) => {
      signal.addEventListener("abort", aborted);
      return new Promise(() => {});
    },
  });
  await using session = await new Sandbox({ tools: [meet, hang] }).session();
  const code = "import asyncio\nawait asyncio.gather(meet(), meet())";
  assert.deepEqual(await context.run("here", () => session.eval(code)), ["here", "here"]);
  const cancels = "try: await asyncio.wait_for(hang(), 0.05)\nexcept TimeoutError: 'over'\nelse: 0";
  assert.equal((await session.run(cancels)).ok, true);
  await isAborted;
});

test("limits of a tool hold, and further tools can be registered", async () => {
  const once = tool({ name: "once", maxCalls: 1, execute: () => 1 });
  const slow = tool({ name: "slow", timeout: 0.05, execute: () => new Promise(() => {}) });
  await using session = await new Sandbox({ tools: [once, slow] }).session();
  assert.equal((await session.run("once(); once()")).error?.type, "RuntimeError");
  assert.equal((await session.run("slow()")).error?.type, "TimeoutError");
  await session.register({ added: (n: number) => n * 2 });
  assert.equal(await session.eval("added(4)"), 8);
});

test("what is no tool is refused by name", () => {
  assert.throws(() => new Sandbox({ tools: { "not a name": () => 1 } }), /cannot have the name/);
  const schema = { type: "string" };
  assert.throws(() => tool({ name: "f", parameters: schema, execute: () => 1 }), /an object/);
  const twice = tool({ name: "f", execute: () => 1 });
  assert.throws(() => new Sandbox({ tools: [twice, twice] }), /two tools have the name/);
});
