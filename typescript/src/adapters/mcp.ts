// Makes the tools of an MCP server functions of the guest.

import { ConfigError } from "../errors.js";
import type { JsonSchema } from "../schema.js";
import { type CallContext, type Tool, ToolError } from "../tools.js";
import { type Approve, ask } from "./approvals.js";
import { type Described, type HostFunction, hostFunctions } from "./functions.js";

export type { ApprovalRequest, Approve } from "./approvals.js";

/**
 * A client that is connected to a server: `Client` of `@modelcontextprotocol/client` 2, or of
 * `@modelcontextprotocol/sdk` 1.
 */
export interface McpClient {
  listTools(params?: { cursor: string }): Promise<ListedTools>;
  callTool(
    params: { name: string; arguments: Record<string, unknown> },
    ...options: readonly unknown[]
  ): Promise<object>;
}

interface ListedTools {
  readonly tools: readonly {
    readonly name: string;
    readonly description?: string | undefined;
    readonly inputSchema: object;
    readonly outputSchema?: object | undefined;
  }[];
  readonly nextCursor?: string | undefined;
}

/** What a call returns, of which the SDK has checked the shape. */
interface Result {
  readonly content?: readonly { readonly type: string; text?: string; data?: string }[];
  readonly structuredContent?: unknown;
  readonly isError?: boolean;
}

/** The most pages in which a server lists its tools. */
const MOST_PAGES = 64;

/** The settings of `mcpTools`. */
export interface McpToolOptions {
  /** The tools that the guest gets, by the server's names. By default it gets all of them. */
  readonly only?: readonly string[];
  /** What the functions' names begin with, such as `github_`. */
  readonly prefix?: string;
  /** The most seconds of a call, 60 by default. Then the guest gets an exception. */
  readonly timeout?: number;
  /**
   * Called before each call. The tool is called if it resolves to `true`; else the guest gets a
   * `PermissionError`. What a server says about its tools, such as `readOnlyHint`, is no reason to
   * trust them.
   */
  readonly approve?: Approve;
}

/** Tools for `Sandbox`, and how a model reads them. */
export interface McpTools {
  readonly tools: readonly Tool[];
  /** The functions as Python, for the prompt or the description of a tool. */
  readonly stubs: string;
}

/**
 * Lists the tools of the server that a client is connected to, and returns them for the guest. The
 * client stays in this program: the guest reaches nothing but these tools.
 *
 * A function returns the structured content, if there is one; else the text; else the list of
 * contents, with `data` as bytes. A result that is an error is a `RuntimeError` with its text.
 *
 * ```ts
 * const { tools, stubs } = await mcpTools(client, { only: ["search"] });
 * const sandbox = new Sandbox({ tools });
 * ```
 *
 * @throws {ConfigError} the server has no tool that `only` names, lists more than 64 pages of
 * tools, or two have the same name in Python.
 */
export async function mcpTools(
  client: McpClient,
  options: McpToolOptions = {},
): Promise<McpTools> {
  const { only, prefix = "" } = options;
  const listed = await listedBy(client);
  const names = new Set(listed.map(({ name }) => name));
  const missing = only?.filter((name) => !names.has(name)) ?? [];
  if (missing.length > 0) {
    throw new ConfigError(`the MCP server has no tool \`${missing.join("`, `")}\``);
  }
  const taken = only === undefined ? listed : listed.filter(({ name }) => only.includes(name));
  const described = taken.map((of): Described => ({
    name: prefix + of.name,
    description: of.description ?? "",
    schema: of.inputSchema as JsonSchema,
    ...(of.outputSchema && { returns: of.outputSchema as JsonSchema }),
    call: (args, context) => called(client, of.name, args, context, options),
  }));
  const functions: readonly HostFunction[] = hostFunctions(described);
  return {
    tools: functions.map(({ tool }) => tool),
    stubs: functions.map(({ stub }) => stub).join("\n\n"),
  };
}

/** Returns all tools. SDK 2 puts the pages together itself. */
async function listedBy(client: McpClient): Promise<ListedTools["tools"]> {
  const all: ListedTools["tools"][number][] = [];
  let cursor: string | undefined;
  for (let pages = 0; pages < MOST_PAGES; pages += 1) {
    const page = await client.listTools(cursor === undefined ? undefined : { cursor });
    all.push(...page.tools);
    cursor = page.nextCursor;
    if (cursor === undefined) return all;
  }
  throw new ConfigError(`the MCP server lists its tools in more than ${MOST_PAGES} pages`);
}

async function called(
  client: McpClient,
  name: string,
  args: Record<string, unknown>,
  { callId, signal }: CallContext,
  { approve, timeout }: McpToolOptions,
): Promise<unknown> {
  if (approve !== undefined) {
    await ask(approve, {
      toolName: name,
      input: args,
      toolCallId: String(callId),
      abortSignal: signal,
    });
  }
  // An answer may come when nobody waits for the call any more.
  signal.throwIfAborted();
  const options = { signal, ...(timeout !== undefined && { timeout: timeout * 1000 }) };
  // SDK 1 takes the schema of the result before the options.
  const rest = "getProtocolEra" in client ? [options] : [undefined, options];
  return resultOf(await client.callTool({ name, arguments: args }, ...rest), name);
}

function resultOf({ content = [], structuredContent, isError }: Result, name: string): unknown {
  const texts = content.flatMap(({ type, text }) => (type === "text" ? [text] : []));
  const text = texts.join("\n");
  if (isError) throw new ToolError("RuntimeError", text || `\`${name}\` has failed`);
  if (structuredContent !== undefined) return structuredContent;
  if (texts.length === content.length) return text;
  return content.map((block) =>
    typeof block.data === "string"
      ? { ...block, data: new Uint8Array(Buffer.from(block.data, "base64")) }
      : block
  );
}
