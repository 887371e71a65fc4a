// The adapter for MCP: a real server in this program, its client, and code that calls its tools.

import assert from "node:assert/strict";
import { test } from "node:test";

import { Client, InMemoryTransport } from "@modelcontextprotocol/client";
import { McpServer } from "@modelcontextprotocol/server";
import { z } from "zod";

import { ConfigError, Sandbox } from "../src/index.js";
import { mcpTools, type McpToolOptions } from "../src/adapters/mcp.js";

/** A client of a server whose tools note their calls. */
async function connected() {
  const calls: unknown[] = [];
  const server = new McpServer({ name: "test", version: "1" });
  server.registerTool("get-weather", {
    description: "Says the weather.",
    inputSchema: z.object({ days: z.int().default(1), city: z.string().min(2) }),
    outputSchema: z.object({ city: z.string(), sunny: z.array(z.boolean()) }),
  }, ({ city, days }) => {
    calls.push(["get-weather", city, days]);
    const structuredContent = { city, sunny: Array.from({ length: days }, () => true) };
    return { content: [{ type: "text", text: "ok" }], structuredContent };
  });
  server.registerTool("remove", {
    description: "Removes a file.",
    inputSchema: z.object({ path: z.string() }),
    annotations: { readOnlyHint: true },
  }, ({ path }) => {
    calls.push(["remove", path]);
    return path === "missing"
      ? { content: [{ type: "text", text: "there is no such file" }], isError: true }
      : { content: [{ type: "text", text: "removed" }, { type: "text", text: path }] };
  });
  server.registerTool("draw", { description: "Draws." }, () => {
    calls.push(["draw"]);
    const data = Buffer.from([1, 2]).toString("base64");
    return { content: [{ type: "image", data, mimeType: "image/png" }] };
  });
  let begun = () => {};
  let cancelled = () => {};
  const isBegun = new Promise<void>((resolve) => {
    begun = resolve;
  });
  const isCancelled = new Promise<void>((resolve) => {
    cancelled = resolve;
  });
  server.registerTool("hang", { description: "Hangs." }, async (context) => {
    context.mcpReq.signal.addEventListener("abort", cancelled);
    begun();
    await isCancelled;
    return { content: [] };
  });
  const client = new Client({ name: "isolet", version: "1" });
  const [here, there] = InMemoryTransport.createLinkedPair();
  await Promise.all([server.connect(there), client.connect(here)]);
  const dispose = async () => {
    cancelled();
    await client.close();
    await server.close();
  };
  return { client, calls, isBegun, isCancelled, [Symbol.asyncDispose]: dispose };
}

const CATCHES = `
def refused(f, *args):
    try: return f(*args)
    except Exception as error: return f"{type(error).__name__}: {error}"
`;

async function sessionWith(client: Client, options: McpToolOptions = {}) {
  const { tools } = await mcpTools(client, options);
  return await new Sandbox({ tools }).session();
}

test("code calls the tools of a server, and gets their contents", async () => {
  await using mcp = await connected();
  await using session = await sessionWith(mcp.client);
  assert.deepEqual(await session.eval("get_weather('Oslo', days=2)"), {
    city: "Oslo",
    sunny: [true, true],
  });
  assert.equal(await session.eval("remove('a')"), "removed\na");
  assert.deepEqual(await session.eval("draw()"), [
    { type: "image", mimeType: "image/png", data: new Uint8Array([1, 2]) },
  ]);
  assert.deepEqual(mcp.calls, [["get-weather", "Oslo", 2], ["remove", "a"], ["draw"]]);
});

test("errors of a tool and wrong arguments are exceptions", async () => {
  await using mcp = await connected();
  await using session = await sessionWith(mcp.client);
  const said = (code: string) => session.eval(`${CATCHES}${code}`);
  assert.equal(await said("refused(remove, 'missing')"), "RuntimeError: there is no such file");
  assert.match(String(await said("refused(get_weather, 3)")), /^TypeError/);
  assert.match(String(await said("refused(get_weather, 'O')")), /Error: /);
  assert.deepEqual(mcp.calls, [["remove", "missing"]]);
});

test("the stubs show the functions as Python, under their prefix", async () => {
  await using mcp = await connected();
  const { stubs, tools } = await mcpTools(mcp.client, { prefix: "web_", only: ["get-weather"] });
  assert.deepEqual(tools.map(({ name }) => name), ["web_get_weather"]);
  assert.equal(
    stubs,
    `class WebGetWeatherResult(TypedDict):
    city: str
    sunny: list[bool]
def web_get_weather(city: str, days: int = 1) -> WebGetWeatherResult:
    """Says the weather."""`,
  );
});

test("a tool that is not named, or not approved, is not called", async () => {
  await using mcp = await connected();
  const asked: unknown[] = [];
  await using session = await sessionWith(mcp.client, {
    only: ["remove"],
    approve: ({ toolName, input }) => {
      asked.push([toolName, input]);
      return (input as { path: string }).path === "old";
    },
  });
  assert.equal((await session.run("draw()")).error?.type, "NameError");
  const code = `${CATCHES}[refused(remove, "new"), refused(remove, "old")]`;
  assert.deepEqual(await session.eval(code), [
    "PermissionError: the call of `remove` was not approved",
    "removed\nold",
  ]);
  assert.deepEqual(asked, [["remove", { path: "new" }], ["remove", { path: "old" }]]);
  assert.deepEqual(mcp.calls, [["remove", "old"]]);
});

test("an approval that comes after the code was stopped calls nothing", async () => {
  await using mcp = await connected();
  const controller = new AbortController();
  const answers: Promise<boolean>[] = [];
  await using session = await sessionWith(mcp.client, {
    approve: ({ abortSignal }) => {
      const late = new Promise<boolean>((resolve) => {
        abortSignal.addEventListener("abort", () => resolve(true), { once: true });
      });
      answers.push(late);
      controller.abort(new Error("enough"));
      return late;
    },
  });
  await assert.rejects(session.run("remove('a')", { signal: controller.signal }), /enough/);
  assert.deepEqual(await Promise.all(answers), [true]);
  await new Promise(setImmediate);
  assert.deepEqual(mcp.calls, []);
});

test("a server that has no such tool is refused", async () => {
  await using mcp = await connected();
  await assert.rejects(mcpTools(mcp.client, { only: ["remvoe"] }), ConfigError);
});

test("the server hears when the code no longer waits", { timeout: 20_000 }, async () => {
  await using mcp = await connected();
  // Nothing but the signal ends the call before the test's own time is over.
  await using session = await sessionWith(mcp.client, { timeout: 600 });
  const controller = new AbortController();
  const running = session.run("hang()", { signal: controller.signal });
  await mcp.isBegun;
  controller.abort(new Error("enough"));
  await assert.rejects(running, /enough/);
  await mcp.isCancelled;
});
