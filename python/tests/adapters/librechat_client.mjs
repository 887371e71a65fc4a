// LibreChat's own tools for code, from `@librechat/agents`, as its graph calls them.

import assert from "node:assert/strict";

const { CLIENT, LIBRECHAT_CODE_BASEURL: base, KEY } = process.env;
const { createCodeExecutionTool } = await import(`${CLIENT}/tools/CodeExecutor.mjs`);
const { createBashExecutionTool } = await import(`${CLIENT}/tools/BashExecutor.mjs`);
const { createProgrammaticToolCallingTool, fetchSessionFiles } = await import(
  `${CLIENT}/tools/ProgrammaticToolCalling.mjs`
);
const { createBashProgrammaticToolCallingTool } = await import(
  `${CLIENT}/tools/BashProgrammaticToolCalling.mjs`
);

const authHeaders = KEY ? { "X-API-Key": KEY } : {};

// A call of the model. The graph adds what it knows of the session.
async function called(tool, args, session = {}) {
  const message = await tool.invoke({ name: tool.name, args, id: "1", type: "tool_call", ...session });
  return { text: message.content, ...message.artifact };
}

function injected({ session_id, files }) {
  const file = ({ id, name, storage_session_id }) => ({
    id, resource_id: id, name, storage_session_id, kind: "user",
  });
  return { session_id, _injected_files: (files ?? []).map(file) };
}

const code = createCodeExecutionTool({ authHeaders });
const python = (source, session, args = []) =>
  called(code, { lang: "py", code: source, args }, session);

// Output, arguments and the working directory.
const hello = await python(
  "import os, sys\nprint(os.getcwd(), sys.argv[1:])\nprint('warned', file=sys.stderr)",
  {}, ["a", "b c"],
);
assert.equal(hello.text, "stdout:\n/mnt/data ['a', 'b c']\n\nstderr:\nwarned");
assert.match(hello.session_id, /^[A-Za-z0-9_-]{21}$/);

// A file that code has written is there for later calls, and variables are not.
const written = await python("x = 1\nimport os; os.mkdir('sub')\nopen('sub/é.csv', 'w').write('a,b')");
assert.match(written.text, /1 persisted file/);
assert.deepEqual(written.files.map(({ name }) => name), ["sub/é.csv"]);
const later = await python("print(open('/mnt/data/sub/é.csv').read(), 'x' in globals())", injected(written));
assert.match(later.text, /stdout:\na,b False/);
assert.equal(later.files, undefined);
const shell = createBashExecutionTool({ authHeaders });
const bash = await called(shell, { command: "cat sub/é.csv; echo; echo more >> sub/é.csv" }, injected(written));
assert.match(bash.text, /stdout:\na,b\n/);
assert.equal(bash.files[0].name, "sub/é.csv");
const found = await fetchSessionFiles(base, bash.session_id, { kind: "user", id: "u" }, authHeaders);
assert.deepEqual(found.map(({ name, id }) => [name, id]), [["sub/é.csv", bash.files[0].id]]);

// What fails says why, and its output is kept.
const raised = await python("print('before')\n1 / 0");
assert.match(raised.text, /before[^]*File "main.py", line 2[^]*ZeroDivisionError: division by zero/);
const rust = await called(code, { lang: "rs", code: "fn main() {}" });
assert.match(rust.text, /stderr:\n`lang` is "rs", and has to be `py` or `bash`/);
const gone = { session_id: "x", _injected_files: [{ id: "y", name: "gone.txt", storage_session_id: "x" }] };
const without = await python("print(1)", gone);
assert.match(without.text, /stdout:\n1\n\nstderr:\nthe node has no file `gone.txt`, or no longer/);
// Newer clients do not show why a request was refused.
const wrong = createCodeExecutionTool({ authHeaders: { "X-API-Key": "wrong" } });
await assert.rejects(called(wrong, { lang: "py", code: "1" }), /returned 401, body: \{"error":"no key|not authorized/);

// Tools that the program calls.
const asked = [];
const tool = (name, invoke) => [name, { name, invoke: async (input) => (asked.push([name, input]), invoke(input)) }];
const toolMap = new Map([
  tool("get-weather", ({ city }) => ({ city, degrees: city.length })),
  tool("fails", () => { throw new Error("out of order"); }),
  tool("class", (input) => input),
  tool("say.again", (input) => input),
]);
const schema = { type: "object", properties: { unit: { type: "string" }, city: { type: "string" } }, required: ["city"] };
const toolDefs = [
  { name: "get-weather", description: "The weather.", parameters: schema },
  { name: "fails", parameters: { type: "object", properties: {} } },
  { name: "class", parameters: { type: "object", properties: { from: { type: "string" } } } },
];
const programs = createProgrammaticToolCallingTool({ authHeaders });
const program = (source, session) => called(programs, { code: source }, { toolMap, toolDefs, ...session });
const many = await program(`
import asyncio
one = await get_weather(city="Rome")
both = await asyncio.gather(get_weather(city="Oslo", unit=None), get_weather("Paris"))
print(one["degrees"], [each["city"] for each in both])
try:
    await fails()
except Exception as error:
    print(type(error).__name__, error)
print(await class_tool(**{"from": "x"}))
print(open("sub/é.csv").read())
open("result.txt", "w").write("done")
`, injected(written));
assert.match(many.text, /^stdout:\n4 \['Oslo', 'Paris'\]\nToolExecutionError out of order\n\{'from': 'x'\}\na,b\n/);
assert.deepEqual(many.files.map(({ name }) => name), ["result.txt"]);
// Calls beside each other come in any order.
assert.deepEqual(asked.slice(0, 3).map(([, { city }]) => city).sort(), ["Oslo", "Paris", "Rome"]);
assert.deepEqual(asked.slice(0, 3).flatMap(([, input]) => Object.keys(input)), ["city", "city", "city"]);
await assert.rejects(
  program("print('so far')\nawait get_weather(city='a')\n{}['missing']"),
  /so far[^]*line 3[^]*KeyError: 'missing'/,
);
await assert.rejects(program("await get_weather()"), /missing 1 required positional argument: 'city'/);
const shells = createBashProgrammaticToolCallingTool({ authHeaders });
const piped = await called(
  shells, { code: `get_weather '{"city": "Rome"}' | jq .degrees\nraw=$(say_again '{"from": "é"}'); echo "$raw"` },
  { toolMap, toolDefs: [toolDefs[0], { name: "say.again" }] },
);
assert.match(piped.text, /^stdout:\n4\n\{"from":"é"\}/);
assert.deepEqual(asked.at(-1), ["say.again", { from: "é" }]);

console.log("all is as it should be");
