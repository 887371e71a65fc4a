// The adapter for the AI SDK in `streamText` and `ToolLoopAgent`, with scripted models and real
// sessions.

import assert from "node:assert/strict";
import { test } from "node:test";

import {
  isStepCount,
  type ModelMessage,
  streamText,
  tool,
  ToolLoopAgent,
  type ToolSet,
} from "ai";
import type { MockLanguageModelV4 } from "ai/test";
import { z } from "zod";

import { Sandbox } from "../src/index.js";
import { codeMode, type PythonTool, pythonTool } from "../src/adapters/ai-sdk.js";
import { outputsIn, scripted, textsIn } from "./scripted_model.js";

interface Asked {
  readonly model: MockLanguageModelV4;
  readonly python: PythonTool;
  readonly messages?: ModelMessage[];
  readonly signal?: AbortSignal;
  /** Whether a person approves each code. */
  readonly isApproved?: boolean;
}

interface Answered {
  readonly text: string;
  /** Whether code of the model waits for approval. */
  readonly approvals: string[];
  /** What the program is to send next time. */
  readonly messages: ModelMessage[];
}

const PROMPT: ModelMessage[] = [{ role: "user", content: "Compute." }];

/** The ways in which a program asks a model that calls tools. */
const WAYS: Readonly<Record<string, (asked: Asked) => Promise<Answered>>> = {
  streamText: async ({ model, python, messages = PROMPT, signal, isApproved }) => {
    const tools: ToolSet = { python };
    const stopWhen = isStepCount(9);
    return await answered(messages, streamText({
      model,
      tools,
      messages,
      stopWhen,
      onError: () => {},
      ...(signal && { abortSignal: signal }),
      ...(isApproved && { toolApproval: { python: "user-approval" } }),
    }));
  },
  "ToolLoopAgent.stream": async (asked) => {
    const { messages = PROMPT, signal } = asked;
    const call = { messages, ...(signal && { abortSignal: signal }) };
    return await answered(messages, await agentOf(asked).stream(call));
  },
  "ToolLoopAgent.generate": async (asked) => {
    const { messages = PROMPT, signal } = asked;
    const call = { messages, ...(signal && { abortSignal: signal }) };
    return await answered(messages, await agentOf(asked).generate(call));
  },
};

function agentOf({ model, python, isApproved }: Asked) {
  const tools: ToolSet = { python };
  return new ToolLoopAgent({
    model,
    tools,
    ...(isApproved && { toolApproval: { python: "user-approval" } }),
  });
}

async function answered(messages: ModelMessage[], result: {
  text: PromiseLike<string> | string;
  content: PromiseLike<readonly Part[]> | readonly Part[];
  responseMessages: PromiseLike<readonly ModelMessage[]> | readonly ModelMessage[];
}): Promise<Answered> {
  const [text, content] = [await result.text, await result.content];
  const approvals = content.flatMap((part) =>
    part.type === "tool-approval-request" && part.approvalId !== undefined ? [part.approvalId] : []
  );
  return { text, approvals, messages: [...messages, ...await result.responseMessages] };
}

interface Part {
  readonly type: string;
  readonly approvalId?: string;
}

/** Has a property shown for each way. */
function each(name: string, shows: (ask: (asked: Asked) => Promise<Answered>) => Promise<void>) {
  for (const [way, ask] of Object.entries(WAYS)) {
    test(`${name}: ${way}`, { timeout: 60_000 }, () => shows(ask));
  }
}

const CATCHES = `
def refused(f, *args):
    try: return f(*args)
    except Exception as error: return f"{type(error).__name__}: {error}"
`;

each("a model gets the text and the pictures of its code", async (ask) => {
  await using session = await new Sandbox().session();
  const shows = `
from IPython.display import display, Image
display(Image(data=b"\\x89PNG\\r\\n\\x1a\\n", format="png"))
print(1)`;
  const model = scripted("x = 20\nprint('hi')", "x + 1", "x / 0", shows);
  const { text } = await ask({ model, python: pythonTool(session) });
  assert.equal(text, "done");
  const [first, second, third, fourth] = outputsIn(model);
  assert.deepEqual([first, second], [
    { type: "text", value: "hi" },
    { type: "text", value: "21" },
  ]);
  assert.ok(third?.type === "error-text" && /ZeroDivisionError/.test(third.value));
  assert.match(JSON.stringify(fourth), /"text":"1.*"image\/png".*iVBORw0KGgo=/);
});

each("code calls tools, and those that need approval only with it", async (ask) => {
  const removed: unknown[] = [];
  const asked: unknown[] = [];
  const remove = tool({
    description: "Removes a file.",
    inputSchema: z.object({ path: z.string() }),
    execute: ({ path }, { toolCallId }) => {
      removed.push([path, toolCallId.split(".")[0]]);
      return path;
    },
  });
  const python = codeMode({ remove }, {
    needsApproval: { remove: true },
    approve: ({ toolName, input }) => {
      asked.push([toolName, input]);
      return (input as { path: string }).path === "old";
    },
  });
  const model = scripted(`${CATCHES}print(refused(remove, "new"), remove("old"), sep="|")`);
  const { text } = await ask({ model, python });
  assert.equal(text, "done");
  assert.deepEqual(textsIn(model), [
    "PermissionError: the call of `remove` was not approved|old",
  ]);
  assert.deepEqual(asked, [["remove", { path: "new" }], ["remove", { path: "old" }]]);
  assert.deepEqual(removed, [["old", "call-0"]]);
});

each("code that a person has to approve does not run before", async (ask) => {
  const seen: string[] = [];
  const note = tool({
    inputSchema: z.object({ text: z.string() }),
    execute: ({ text }) => void seen.push(text),
  });
  const python = codeMode({ note });
  const model = scripted("note('first')", "note('second')");
  const first = await ask({ model, python, isApproved: true });
  assert.equal(first.approvals.length, 1);
  assert.deepEqual(seen, []);
  const second = await ask({ model, python, isApproved: true, messages: answer(first, true) });
  assert.equal(second.approvals.length, 1);
  assert.deepEqual(seen, ["first"]);
  const last = await ask({ model, python, isApproved: true, messages: answer(second, false) });
  assert.equal(last.text, "done");
  assert.deepEqual(seen, ["first"]);
});

/** Returns the messages with the answer of a person. */
function answer({ messages, approvals }: Answered, approved: boolean): ModelMessage[] {
  const content = approvals.map((approvalId) => ({
    type: "tool-approval-response" as const,
    approvalId,
    approved,
  }));
  return [...messages, { role: "tool", content }];
}

each("aborting interrupts the code, and the session goes on", async (ask) => {
  const controller = new AbortController();
  const begun = () => controller.abort(new Error("enough"));
  // Nothing but the signal ends the code before the test's own time is over.
  const limits = { runTime: 600 };
  await using session = await new Sandbox({ tools: { begun }, limits }).session();
  const model = scripted("x = 1\nbegun()\nwhile True: pass");
  const { signal } = controller;
  // The AI SDK may end with what was aborted, or with the error as the call's result.
  await ask({ model, python: pythonTool(session), signal }).catch(() => {});
  assert.equal(signal.aborted, true);
  const again = scripted("x");
  await ask({ model: again, python: pythonTool(session) });
  assert.deepEqual(textsIn(again), ["1"]);
});

test("the stream tells of each call of code and of its result as it comes", async () => {
  await using session = await new Sandbox().session();
  const tools = { python: pythonTool(session) };
  const model = scripted("x = 6", "x * 7");
  const stopWhen = isStepCount(3);
  const seen: unknown[] = [];
  const { fullStream } = streamText({ model, tools, prompt: "Compute.", stopWhen });
  for await (const part of fullStream) {
    if (part.type === "tool-call") seen.push((part.input as { code: string }).code);
    if (part.type === "tool-result") seen.push((part.output as { text: string }).text);
  }
  assert.deepEqual(seen, ["x = 6", "[no output]", "x * 7", "42"]);
});
