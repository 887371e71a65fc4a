// The adapter for MCP: a real server in this program, clients of both SDKs, and code that calls its
// tools.

import assert from "node:assert/strict";
import { test } from "node:test";

import { Client, InMemoryTransport } from "@modelcontextprotocol/client";
import { Client as Client1 } from "@modelcontextprotocol/sdk/client/index.js";
import { InMemoryTransport as InMemoryTransport1 } from "@modelcontextprotocol/sdk/inMemory.js";
import { Server as Server1 } from "@modelcontextprotocol/sdk/server/index.js";
import { CallToolRequestSchema, ListToolsRequestSchema } from "@modelcontextprotocol/sdk/types.js";
import { McpServer } from "@modelcontextprotocol/server";
import { z } from "zod";

import { ConfigError, Sandbox } from "../src/index.js";
import { type McpClient, mcpTools, type McpToolOptions } from "../src/adapters/mcp.js";

const INFO = { name: "isolet", version: "1" };
const SDKS = ["SDK 1", "SDK 2"] as const;
type Sdk = (typeof SDKS)[number];

/** Has a property shown for the clients of both SDKs. */
function each(name: string, shows: (sdk: Sdk) => Promise<void>): void {
  for (const sdk of SDKS) test(`${name}: ${sdk}`, { timeout: 60_000 }, () => shows(sdk));
}

/** A client of a server whose tools note their calls. */
async function connected(sdk: Sdk) {
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
  const client = sdk === "SDK 1" ? new Client1(INFO) : new Client(INFO);
  const [here, there] = InMemoryTransport.createLinkedPair();
  await Promise.all([server.connect(there), client.connect(here as never)]);
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

async function sessionWith(client: McpClient, options: McpToolOptions = {}) {
  const { tools } = await mcpTools(client, options);
  return await new Sandbox({ tools }).session();
}

each("code calls the tools of a server, and gets their contents", async (sdk) => {
  await using mcp = await connected(sdk);
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

each("errors of a tool and wrong arguments are exceptions", async (sdk) => {
  await using mcp = await connected(sdk);
  await using session = await sessionWith(mcp.client);
  const said = (code: string) => session.eval(`${CATCHES}${code}`);
  assert.equal(await said("refused(remove, 'missing')"), "RuntimeError: there is no such file");
  assert.match(String(await said("refused(get_weather, 3)")), /^TypeError/);
  assert.match(String(await said("refused(get_weather, 'O')")), /Error: /);
  assert.deepEqual(mcp.calls, [["remove", "missing"]]);
});

each("the stubs show the functions as Python, under their prefix", async (sdk) => {
  await using mcp = await connected(sdk);
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

each("a tool that is not named, or not approved, is not called", async (sdk) => {
  await using mcp = await connected(sdk);
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

each("an approval that comes after the code was stopped calls nothing", async (sdk) => {
  await using mcp = await connected(sdk);
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

each("a server that has no such tool is refused", async (sdk) => {
  await using mcp = await connected(sdk);
  await assert.rejects(mcpTools(mcp.client, { only: ["remvoe"] }), ConfigError);
});

each("the server hears when the code no longer waits", async (sdk) => {
  await using mcp = await connected(sdk);
  // Nothing but the signal ends the call before the test's own time is over.
  await using session = await sessionWith(mcp.client, { timeout: 600 });
  const controller = new AbortController();
  const running = session.run("hang()", { signal: controller.signal });
  await mcp.isBegun;
  controller.abort(new Error("enough"));
  await assert.rejects(running, /enough/);
  await mcp.isCancelled;
});

/** A server of SDK 1 that lists one tool on each of so many pages. */
async function paged(sdk: Sdk, pages: number) {
  const server = new Server1(INFO, { capabilities: { tools: {} } });
  server.setRequestHandler(ListToolsRequestSchema, ({ params }) => {
    const at = Number(params?.cursor ?? 0);
    const tools = [{ name: `tool_${at}`, inputSchema: { type: "object" as const } }];
    return at + 1 < pages ? { tools, nextCursor: String(at + 1) } : { tools };
  });
  server.setRequestHandler(CallToolRequestSchema, ({ params }) => ({
    content: [{ type: "text", text: params.name }],
  }));
  const client = sdk === "SDK 1" ? new Client1(INFO) : new Client(INFO);
  const [here, there] = InMemoryTransport1.createLinkedPair();
  await Promise.all([server.connect(there), client.connect(here as never)]);
  const dispose = async () => {
    await client.close();
    await server.close();
  };
  return { client, [Symbol.asyncDispose]: dispose };
}

each("tools of all pages of a server of SDK 1 are functions", async (sdk) => {
  await using mcp = await paged(sdk, 3);
  await using session = await sessionWith(mcp.client);
  assert.equal(await session.eval("tool_0() + tool_1() + tool_2()"), "tool_0tool_1tool_2");
});

each("a server whose pages never end is refused", async (sdk) => {
  await using mcp = await paged(sdk, Infinity);
  await assert.rejects(mcpTools(mcp.client), /64/);
});
