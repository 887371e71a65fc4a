// The adapter for Mastra: its agents with scripted models, and real sessions.

import assert from "node:assert/strict";
import process from "node:process";
import { test } from "node:test";

import { Agent } from "@mastra/core/agent";
import { Mastra } from "@mastra/core/mastra";
import { RequestContext } from "@mastra/core/request-context";
import { InMemoryStore } from "@mastra/core/storage";
import { createTool } from "@mastra/core/tools";
import type { MockLanguageModelV4 } from "ai/test";
import { z } from "zod";

import { ConfigError, run, Sandbox } from "../src/index.js";
import {
  type ApprovalRequest,
  codeMode,
  type CodeModeOptions,
  type PythonTool,
  pythonTool,
  type Tools,
} from "../src/adapters/mastra.js";
import { outputsIn, scripted, textsIn } from "./scripted_model.js";

process.env["MASTRA_TELEMETRY_DISABLED"] = "1";

interface Asked {
  readonly signal?: AbortSignal;
  readonly requestContext?: RequestContext;
}

function agentOf(model: MockLanguageModelV4, python: PythonTool): Agent {
  const agent = new Agent({
    id: "analyst",
    name: "analyst",
    instructions: "Compute.",
    // Mastra's own type of these models says that they stream when they generate.
    model: model as never,
    tools: { python },
  });
  // A run that waits for approval is kept in it.
  new Mastra({ agents: { analyst: agent }, storage: new InMemoryStore(), logger: false });
  return agent;
}

/** Runs the codes as calls of a model, with either function of an agent. */
async function asked(python: PythonTool, codes: readonly string[], how: Asked = {}) {
  const models = [scripted(...codes), scripted(...codes)] as const;
  const options = {
    maxSteps: codes.length + 1,
    ...(how.signal && { abortSignal: how.signal }),
    ...(how.requestContext && { requestContext: how.requestContext }),
  };
  const generated = await agentOf(models[0], python).generate("Compute.", options);
  assert.equal(generated.text, "done");
  const streamed = await agentOf(models[1], python).stream("Compute.", options);
  assert.equal(await streamed.text, "done");
  return models;
}

/** Returns what the model got for its codes, which both functions of an agent have to agree on. */
async function texts(python: PythonTool, ...codes: string[]): Promise<string[]> {
  const [one, other] = (await asked(python, codes)).map(textsIn);
  assert.deepEqual(one, other);
  return one ?? [];
}

/** Tools that note their calls. */
function files() {
  const removed: unknown[] = [];
  const search = createTool({
    id: "search",
    description: "Searches files.",
    inputSchema: z.object({ limit: z.int().default(2), query: z.string().min(2) }),
    outputSchema: z.array(z.string()),
    execute: async ({ query, limit }) => Array.from({ length: limit }, (_, at) => `${query}${at}`),
  });
  const remove = createTool({
    id: "remove-file",
    description: "Removes a file.",
    inputSchema: z.object({ path: z.string() }),
    execute: async ({ path }, { agent }) => {
      removed.push([path, agent?.toolCallId]);
      return { removed: path };
    },
  });
  return { search, remove, removed };
}

const CATCHES = `
def refused(f, *args):
    try: return f(*args)
    except Exception as error: return f"{type(error).__name__}: {error}"
`;

test("a model gets the text of its code, and its session keeps variables", async () => {
  await using session = await new Sandbox().session();
  const codes = ["x = 20\nprint('hi')", "x + 1", "x / 0", "pass"];
  for (const model of await asked(pythonTool(session), codes)) {
    const [first, second, third, fourth] = outputsIn(model);
    assert.deepEqual([first, second, fourth], [
      { type: "text", value: "hi" },
      { type: "text", value: "21" },
      { type: "text", value: "[no output]" },
    ]);
    assert.ok(third?.type === "error-text" && /ZeroDivisionError/.test(third.value));
  }
});

test("a picture reaches the model as media", async () => {
  await using session = await new Sandbox().session();
  const code = `
from IPython.display import display, Image
display(Image(data=b"\\x89PNG\\r\\n\\x1a\\n", format="png"))
print(1)`;
  for (const model of await asked(pythonTool(session), [code])) {
    const [shown] = outputsIn(model);
    assert.match(JSON.stringify(shown), /"text":"1.*"image\/png".*iVBORw0KGgo=/);
  }
});

// Nothing but the signal ends the code before the test's own time is over.
const limits = { runTime: 600 };
const timeout = 60_000;

test("aborting the agent's run interrupts the code, not the session", { timeout }, async () => {
  const controller = new AbortController();
  const begun = () => controller.abort(new Error("enough"));
  await using session = await new Sandbox({ tools: { begun }, limits }).session();
  const python = pythonTool(session);
  const agent = agentOf(scripted("x = 1\nbegun()\nwhile True: pass"), python);
  const { signal: abortSignal } = controller;
  // Mastra may end with what was aborted, or with the error as the call's result.
  await agent.generate("Compute.", { abortSignal }).catch(() => {});
  assert.equal(abortSignal.aborted, true);
  // It takes its turn after the code that was interrupted.
  assert.deepEqual(await texts(python, "x"), ["1"]);
});

test("code that a person has to approve does not run before", { timeout }, async () => {
  const seen: string[] = [];
  const note = (text: string) => void seen.push(text);
  await using session = await new Sandbox({ tools: { note } }).session();
  const python = pythonTool(session, { requireApproval: true });
  const agent = agentOf(scripted("note('first')", "note('second')"), python);
  const first = await agent.generate("Compute.", { maxSteps: 3 });
  assert.equal(first.finishReason, "suspended");
  assert.deepEqual(seen, []);
  const { runId } = first;
  assert.ok(runId);
  const second = await agent.approveToolCallGenerate({ runId, toolCallId: "call-0" });
  assert.equal(second.finishReason, "suspended");
  assert.deepEqual(seen, ["first"]);
  const last = await agent.declineToolCallGenerate({ runId, toolCallId: "call-1" });
  assert.equal(last.text, "done");
  assert.deepEqual(seen, ["first"]);
});

test("code calls the tools as functions, with their defaults and checks", async () => {
  const { search, remove, removed } = files();
  const python = codeMode({ search, "remove-file": remove });
  const [found, wrong, missing, gone, fresh] = await texts(
    python,
    "hits = search('cat') + search(query='dog', limit=1)\nprint(hits)",
    "search('c')",
    "search()",
    "remove_file('a')",
    "'hits' in globals()",
  );
  assert.equal(found, "['cat0', 'cat1', 'dog0']");
  assert.match(String(wrong), /TypeError[\s\S]*Too small/);
  assert.match(String(missing), /TypeError/);
  assert.equal(gone, "{'removed': 'a'}");
  assert.equal(fresh, "False");
  assert.equal(removed.length, 2);
  assert.match(JSON.stringify(removed), /\["a","call-3\.\d+"\]/);
});

test("the description shows the functions as valid Python", async () => {
  const { search, remove } = files();
  const { description } = codeMode({ search, remove }, { requireApproval: { remove: true } });
  const stubs = /```python\n([\s\S]*)\n```$/.exec(description)?.[1] ?? "";
  assert.match(stubs, /def search\(query: str, limit: int = 2\) -> list\[str\]:/);
  assert.match(stubs, /Removes a file\.\n\n {4}A call needs approval/);
  const checked = await run("exec(stubs)\nsearch.__doc__", { inputs: { stubs } });
  assert.equal(checked.throwForError().value, "Searches files.");
});

test("what a tool throws and a result that does not fit are exceptions", async () => {
  const failing = createTool({
    id: "failing",
    description: "",
    execute: async () => {
      throw new RangeError("too far");
    },
  });
  const wrong = createTool({
    id: "wrong",
    description: "",
    outputSchema: z.string(),
    execute: async () => 3 as never,
  });
  const suspending = createTool({
    id: "suspending",
    description: "",
    execute: async (_, { agent }) => await agent?.suspend({}),
  });
  const code = `${CATCHES}print(*map(refused, (failing, wrong, suspending)), sep="|")`;
  const [said] = await texts(codeMode({ failing, wrong, suspending }), code);
  assert.match(String(said), /^ValueError: too far\|TypeError: Tool output validation failed/);
  assert.match(String(said), /RuntimeError: `suspending` cannot suspend the agent's run/);
});

test("a tool that needs approval is called only with it", async () => {
  const rules: readonly ((remove: Tools[string]) => [Tools[string], CodeModeOptions])[] = [
    (remove) => [remove, { requireApproval: { remove: true } }],
    (remove) => [remove, { requireApproval: { remove: (input) => "path" in (input as object) } }],
    (remove) => [Object.assign(remove, { requireApproval: true }), {}],
    (remove) => [Object.assign(remove, { needsApprovalFn: () => Promise.resolve(true) }), {}],
  ];
  for (const rule of rules) {
    const { search, remove: made, removed } = files();
    const [remove, options] = rule(made);
    const requests: ApprovalRequest[] = [];
    const python = codeMode({ search, remove }, {
      ...options,
      approve: (request) => {
        requests.push(request);
        return (request.input as { path: string }).path === "old";
      },
    });
    const code = `${CATCHES}print(search("cat"), refused(remove, "new"), remove("old"), sep="|")`;
    const refusal = "PermissionError: the call of `remove` was not approved";
    assert.deepEqual(await texts(python, code), [
      `['cat0', 'cat1']|${refusal}|{'removed': 'old'}`,
    ]);
    // The host saw the approved calls, under the numbers that were asked for.
    const approved = requests.filter((_, at) => at % 2 === 1);
    assert.deepEqual(removed, approved.map(({ toolCallId }) => ["old", toolCallId]));
    assert.equal(requests.length, 4);
  }
});

test("without anybody to ask, a call that needs approval is refused", async () => {
  const { remove, removed } = files();
  const python = codeMode({ remove }, { requireApproval: { remove: true } });
  const [said] = await texts(python, `${CATCHES}print(refused(remove, "a"))`);
  assert.match(String(said), /^PermissionError: .*there is nobody to ask$/);
  assert.deepEqual(removed, []);
});

test("tools and rules get the request's context", async () => {
  const seen: unknown[] = [];
  const whoami = createTool({
    id: "whoami",
    description: "",
    execute: async (_, { requestContext }) => requestContext.get("user"),
  });
  const python = codeMode({ whoami }, {
    requireApproval: { whoami: (_, context) => !seen.push(context.requestContext) },
  });
  const requestContext = new RequestContext();
  requestContext.set("user", "ada");
  for (const model of await asked(python, ["whoami()"], { requestContext })) {
    assert.deepEqual(textsIn(model), ["'ada'"]);
  }
  assert.deepEqual(seen.map((each) => (each as { user: unknown }).user), ["ada", "ada"]);
});

test("what cannot be called is refused when the tool is made", async () => {
  const { remove } = files();
  const client = createTool({ id: "client", description: "", inputSchema: z.object({}) });
  assert.throws(() => codeMode({ client }), /`client` has no `execute`/);
  assert.throws(() => codeMode({ "a-b": remove, a_b: remove }), /are both `a_b` in Python/);
  assert.throws(() => codeMode({ remove }, { requireApproval: { remvoe: true } }), /no such tool/);
  assert.throws(() => codeMode({}, { wrong: 1 } as never), ConfigError);
  await using session = await new Sandbox().session();
  assert.throws(() => codeMode({}, { session, offline: true }), /`session` has a policy/);
});
