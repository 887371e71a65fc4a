// The adapter for LangChain: agents with scripted models, and real sessions.

import assert from "node:assert/strict";
import { test } from "node:test";

import { AIMessage, HumanMessage, ToolMessage } from "@langchain/core/messages";
import { fakeModel } from "@langchain/core/testing";
import { createAgent } from "langchain";

import { Sandbox, type Session } from "../src/index.js";
import { pythonTool, type PythonResult } from "../src/adapters/langchain.js";

/** An agent whose model runs one code in each turn, and then says "done". */
function agentOf(session: Session, ...codes: string[]) {
  const model = fakeModel();
  codes.forEach((code, at) =>
    model.respondWithTools([{ name: "run_python", args: { code }, id: `call-${at}` }])
  );
  model.respond(new AIMessage("done"));
  return createAgent({ model, tools: [pythonTool(session)] });
}

/** Runs the codes, and returns the messages with their results. */
async function results(session: Session, ...codes: string[]): Promise<ToolMessage[]> {
  const agent = agentOf(session, ...codes);
  const { messages } = await agent.invoke({ messages: [new HumanMessage("Compute.")] });
  assert.equal(messages.at(-1)?.content, "done");
  return messages.filter((message) => ToolMessage.isInstance(message));
}

test("a model gets the text of its code, and its session keeps variables", async () => {
  await using session = await new Sandbox().session();
  const [first, second, third] = await results(
    session,
    "x = 20\nprint('hi')",
    "x + 1",
    "x / 0",
  );
  assert.deepEqual([first?.content, second?.content], ["hi", "21"]);
  assert.match(String(third?.content), /ZeroDivisionError/);
  assert.equal((third?.artifact as PythonResult | undefined)?.isError, true);
});

test("a picture reaches the model as an image", async () => {
  await using session = await new Sandbox().session();
  const code = `
from IPython.display import display, Image
display(Image(data=b"\\x89PNG\\r\\n\\x1a\\n", format="png"))
print(1)`;
  const [shown] = await results(session, code);
  assert.ok(Array.isArray(shown?.content));
  assert.deepEqual(shown.content[1], {
    type: "image",
    mimeType: "image/png",
    data: "iVBORw0KGgo=",
  });
});

// Nothing but the signal ends the code before the test's own time is over.
const limits = { runTime: 600 };
const timeout = 20_000;

test("aborting the agent's run interrupts the code, not the session", { timeout }, async () => {
  const controller = new AbortController();
  const begun = () => controller.abort(new Error("enough"));
  await using session = await new Sandbox({ tools: { begun }, limits }).session();
  const agent = agentOf(session, "x = 1\nbegun()\nwhile True: pass");
  const { signal } = controller;
  await assert.rejects(agent.invoke({ messages: [new HumanMessage("Compute.")] }, { signal }));
  // It takes its turn after the code that was interrupted.
  const [next] = await results(session, "x");
  assert.equal(next?.content, "1");
});

test("a call without code runs nothing", async () => {
  await using session = await new Sandbox().session();
  await assert.rejects(pythonTool(session).invoke({ other: 1 } as never));
});
