// The adapter for the OpenAI Agents SDK: agents with scripted models, and real sessions.

import assert from "node:assert/strict";
import { test } from "node:test";

import { Agent, Runner, setTracingDisabled } from "@openai/agents";
import { assistantMessage, functionCall, ScriptedModel } from "@openai/agents/testing";

import { Sandbox, type Session } from "../src/index.js";
import { pythonTool, type PythonToolOptions } from "../src/adapters/openai-agents.js";

setTracingDisabled(true);

/** An agent whose model runs one code in each turn, and then says "done". */
function agentOf(session: Session, codes: readonly string[], options: PythonToolOptions = {}) {
  const name = options.name ?? "run_python";
  const calls = codes.map((code, at) => [functionCall(name, { code }, { callId: `call-${at}` })]);
  const model = new ScriptedModel([...calls, [assistantMessage("done")]]);
  const agent = new Agent({ name: "analyst", model, tools: [pythonTool(session, options)] });
  return { agent, model, runner: new Runner() };
}

/** What the model got for its calls. */
function outputs(model: ScriptedModel): unknown[] {
  const input = model.lastCall?.request.input;
  assert.ok(Array.isArray(input));
  return input.flatMap((item) => (item.type === "function_call_result" ? [item.output] : []));
}

test("a model gets the text of its code, and its session keeps variables", async () => {
  await using session = await new Sandbox().session();
  const codes = ["x = 20\nprint('hi')", "x + 1", "x / 0"];
  const { agent, model, runner } = agentOf(session, codes);
  const result = await runner.run(agent, "Compute.");
  assert.equal(result.finalOutput, "done");
  const [first, second, third] = outputs(model);
  assert.deepEqual([first, second], [
    { type: "text", text: "hi" },
    { type: "text", text: "21" },
  ]);
  assert.match(JSON.stringify(third), /ZeroDivisionError/);
  const [tool] = model.firstCall?.request.tools ?? [];
  assert.equal(tool?.type === "function" && tool.name, "run_python");
});

test("a picture reaches the model as an image", async () => {
  await using session = await new Sandbox().session();
  const code = `
from IPython.display import display, Image
display(Image(data=b"\\x89PNG\\r\\n\\x1a\\n", format="png"))
print(1)`;
  const { agent, model, runner } = agentOf(session, [code]);
  await runner.run(agent, "Draw.");
  const [shown] = outputs(model);
  assert.match(JSON.stringify(shown), /"text":"1.*iVBORw0KGgo=/);
  assert.match(JSON.stringify(shown), /image\/png/);
});

test("code that needs approval runs after it is approved, and not if it is rejected", async () => {
  const seen: string[] = [];
  const note = (text: string) => void seen.push(text);
  await using session = await new Sandbox({ tools: { note } }).session();
  const codes = ["note('first')", "note('second')"];
  const { agent, runner } = agentOf(session, codes, { needsApproval: true });
  const asked = await runner.run(agent, "Compute.");
  assert.equal(asked.interruptions.length, 1);
  assert.deepEqual(seen, []);
  for (const each of asked.interruptions) asked.state.approve(each);
  const second = await runner.run(agent, asked.state);
  assert.equal(second.interruptions.length, 1);
  assert.deepEqual(seen, ["first"]);
  for (const each of second.interruptions) second.state.reject(each);
  assert.equal((await runner.run(agent, second.state)).finalOutput, "done");
  assert.deepEqual(seen, ["first"]);
});

// Nothing but the signal ends the code before the test's own time is over.
const limits = { runTime: 600 };
const timeout = 20_000;

test("aborting the agent's run interrupts the code, not the session", { timeout }, async () => {
  const controller = new AbortController();
  const begun = () => controller.abort(new Error("enough"));
  await using session = await new Sandbox({ tools: { begun }, limits }).session();
  const { agent, runner } = agentOf(session, ["x = 1\nbegun()\nwhile True: pass"]);
  const { signal } = controller;
  await assert.rejects(runner.run(agent, "Compute.", { signal }));
  // It takes its turn after the code that was interrupted.
  const again = agentOf(session, ["x"]);
  await again.runner.run(again.agent, "Compute.");
  assert.deepEqual(outputs(again.model), [{ type: "text", text: "1" }]);
});
