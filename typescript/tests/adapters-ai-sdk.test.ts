// The adapter for the AI SDK: `generateText` with scripted models, and real sessions.

import assert from "node:assert/strict";
import { test } from "node:test";

import { generateText, isStepCount, jsonSchema, tool, type ToolSet } from "ai";
import { z } from "zod";

import { ConfigError, run, Sandbox } from "../src/index.js";
import { type ApprovalRequest, codeMode, pythonTool } from "../src/adapters/ai-sdk.js";
import { outputsIn, scripted } from "./scripted_model.js";

/** Runs the codes as calls of a model, and returns what the model got for each. */
async function outputs(python: ToolSet[string], ...codes: string[]) {
  const model = scripted(...codes);
  const tools = { python };
  const stopWhen = isStepCount(codes.length + 1);
  const { text } = await generateText({ model, tools, prompt: "Compute.", stopWhen });
  assert.equal(text, "done");
  return outputsIn(model);
}

/** The same as texts: of what the code printed. */
async function texts(python: ToolSet[string], ...codes: string[]): Promise<string[]> {
  return (await outputs(python, ...codes)).map((output) => {
    assert.ok(output?.type === "text" || output?.type === "error-text", JSON.stringify(output));
    return output.value;
  });
}

function descriptionOf(python: ToolSet[string]): string {
  const { description } = python as { description?: unknown };
  assert.equal(typeof description, "string");
  return String(description);
}

/** Tools that note their calls. */
function files() {
  const removed: unknown[] = [];
  const search = tool({
    description: "Searches files.",
    inputSchema: z.object({ limit: z.int().default(2), query: z.string().min(2) }),
    outputSchema: z.array(z.string()),
    execute: ({ query, limit }) => Array.from({ length: limit }, (_, at) => `${query}${at}`),
  });
  const remove = tool({
    description: "Removes a file.",
    inputSchema: z.object({ path: z.string() }),
    execute: ({ path }, { toolCallId }) => {
      removed.push([path, toolCallId]);
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
  const [first, second, third, fourth] = await outputs(pythonTool(session), ...codes);
  assert.deepEqual(first, { type: "text", value: "hi" });
  assert.deepEqual(second, { type: "text", value: "21" });
  assert.equal(third?.type, "error-text");
  assert.match(String(third?.type === "error-text" && third.value), /ZeroDivisionError/);
  assert.deepEqual(fourth, { type: "text", value: "[no output]" });
  assert.equal(await session.get("x"), 20);
});

// A PNG of one pixel.
const PNG =
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQ" +
  "AAAABJRU5ErkJggg==";
const SHOWS = `
import base64
class Picture:
    def _repr_png_(self): return base64.b64decode("${PNG}")
class Page:
    def _repr_html_(self): return "<b>page</b>"
from IPython.display import display
`;

test("pictures reach the model as media, as many as may, other displays by name", async () => {
  await using session = await new Sandbox().session();
  const python = pythonTool(session, { maxPictures: 1 });
  const [shown] = await outputs(python, `${SHOWS}display(Picture(), Picture(), Page())\nprint(1)`);
  assert.equal(shown?.type, "content");
  const [text, picture, ...rest] = shown?.type === "content" ? shown.value : [];
  assert.ok(text?.type === "text");
  assert.match(text.text, /^1\n\[displayed: text\/html.*\]\n\[pictures left out: 1\]$/);
  assert.ok(picture?.type === "file" && picture.data.type === "data", JSON.stringify(picture));
  assert.equal(picture.mediaType, "image/png");
  assert.equal(picture.data.data, PNG);
  assert.deepEqual(rest, []);
});

test("long results are cut in the middle, and a session that ended starts anew", async () => {
  await using session = await new Sandbox({ checkpoint: false }).session();
  const python = pythonTool(session, { maxChars: 100 });
  const [long, ended, after] = await texts(
    python,
    "print('\\U0001f600' * 500)",
    "x = 1\nimport os; os._exit(1)",
    "'x' in globals()",
  );
  assert.ok(long !== undefined && long.length < 200 && long.isWellFormed());
  assert.match(long, /\[\d+ characters left out\]/);
  if (!session.alive) assert.match(String(ended), /variables and imports are lost/);
  assert.match(String(after), /False$/);
});

// Nothing but the signal ends the code before the test's own time is over.
const limits = { runTime: 600 };
const timeout = 20_000;

test("aborting a call interrupts its code, and the session goes on", { timeout }, async () => {
  const controller = new AbortController();
  const begun = () => controller.abort(new Error("enough"));
  await using session = await new Sandbox({ tools: { begun }, limits }).session();
  const tools = { python: pythonTool(session) };
  const model = scripted("x = 1\nbegun()\nwhile True: pass");
  const calling = generateText({
    model,
    tools,
    prompt: "Compute.",
    stopWhen: isStepCount(2),
    abortSignal: controller.signal,
  });
  // The AI SDK may end with what was aborted, or with the error as the call's result.
  await calling.catch((error: unknown) => assert.equal((error as Error).message, "enough"));
  assert.equal(controller.signal.aborted, true);
  assert.equal(await session.eval("x"), 1);
});

test("aborting a call interrupts its code in code mode, too", { timeout }, async () => {
  const controller = new AbortController();
  let inner: AbortSignal | undefined;
  const begun = tool({
    inputSchema: z.object({}),
    execute: (_, { abortSignal }) => {
      inner = abortSignal;
      controller.abort(new Error("enough"));
      return 1;
    },
  });
  const { execute } = codeMode({ begun }, { limits });
  const { signal: abortSignal } = controller;
  const options = { toolCallId: "call", messages: [], context: {}, abortSignal };
  const code = "begun()\nwhile True: pass";
  await assert.rejects(async () => await execute({ code }, options), /enough/);
  assert.equal(inner?.aborted, true);
});

test("calls of one step take turns", async () => {
  await using session = await new Sandbox().session();
  const { execute } = pythonTool(session);
  const options = { messages: [], context: {} };
  const results = await Promise.all(
    ["a = 1", "a += 1", "a"].map((code, at) =>
      execute({ code }, { ...options, toolCallId: String(at) })
    ),
  );
  assert.deepEqual(results.at(-1), { text: "2", isError: false, pictures: [] });
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
  assert.equal(removed.length, 1);
  assert.match(JSON.stringify(removed), /\["a","call-3\.\d+"\]/);
});

test("the description shows the functions as valid Python", async () => {
  const place = z.object({ city: z.string().describe("Its\nname."), zip: z.string().optional() });
  const tools = {
    weather: tool({
      description: 'The "weather".\n\nOf \\ places """now"""',
      inputSchema: z.object({
        days: z.number().default(1),
        units: z.enum(["C", "F"]).nullable(),
        places: z.array(place).describe("Where."),
        extra: z.record(z.string(), z.int()).optional(),
      }),
      outputSchema: z.object({ sunny: z.boolean() }),
      execute: () => ({ sunny: true }),
    }),
    "from-web": tool({
      inputSchema: z.object({ from: z.string(), "user-id": z.int() }),
      execute: (input) => input,
    }),
    tree: tool({
      inputSchema: jsonSchema({
        type: "object",
        properties: { root: { $ref: "#/$defs/node" } },
        required: ["root"],
        $defs: {
          node: {
            type: "object",
            properties: { children: { type: "array", items: { $ref: "#/$defs/node" } } },
            required: ["children"],
          },
        },
      }),
      execute: (input) => input,
    }),
  };
  const python = codeMode(tools);
  const description = descriptionOf(python);
  const stubs = /```python\n([\s\S]*)\n```$/.exec(description)?.[1] ?? "";
  assert.match(stubs, /def weather\(units: Literal\["C", "F"\] \| None, places: list\[Weather/);
  assert.match(stubs, /days: float = 1, extra: dict\[str, int\] = \.\.\.\) -> WeatherResult:/);
  assert.match(stubs, /city: str {2}# Its name\.\n {4}zip: NotRequired\[str\]/);
  assert.match(stubs, /class TreeNode\(TypedDict\):\n {4}children: list\[TreeNode\]/);
  assert.match(stubs, /def from_web\(arguments: FromWebArguments\)/);
  const check = `
from typing import *
import annotationlib
exec(stubs)
types = [annotationlib.get_annotations(f) for f in (weather, from_web, tree, TreeNode)]
weather.__doc__`;
  const checked = await run(check, { inputs: { stubs } });
  const doc = String(checked.throwForError().value);
  assert.match(doc, /^The "weather"\.\n\n *Of \\ places """now"""\n *places: Where\.$/);
  const [web, tree, sunny] = await texts(
    python,
    "from_web({'from': 'a', 'user-id': 3})",
    "tree({'children': [{'children': []}]})['root']",
    "weather(None, [{'city': 'Oslo'}])['sunny']",
  );
  assert.equal(web, "{'from': 'a', 'user-id': 3}");
  assert.equal(tree, "{'children': [{'children': []}]}");
  assert.equal(sunny, "True");
});

test("results reach the code as JSON has them, the last one of several", async () => {
  const empty = z.object({});
  const python = codeMode({
    when: tool({
      inputSchema: empty,
      execute: () => ({ at: new Date(0), none: undefined, n: 2n ** 70n }),
    }),
    bytes: tool({ inputSchema: empty, execute: () => new Uint8Array([1, 2]) }),
    steps: tool({
      inputSchema: empty,
      async *execute() {
        yield "first";
        yield "last";
      },
    }),
    failing: tool({
      inputSchema: empty,
      execute: (): string => {
        throw new RangeError("too far");
      },
    }),
  });
  const code = `${CATCHES}print(when(), bytes(), steps(), refused(failing), sep="|")`;
  const date = "{'at': '1970-01-01T00:00:00.000Z', 'n': 1180591620717411303424}";
  assert.deepEqual(await texts(python, code), [`${date}|b'\\x01\\x02'|last|ValueError: too far`]);
});

test("a tool that needs approval is not called without it", async () => {
  const { search, remove, removed } = files();
  const asked: ApprovalRequest[] = [];
  const python = codeMode({ search, remove: { ...remove, needsApproval: true } }, {
    approve: (request) => {
      asked.push(request);
      return (request.input as { path: string }).path === "old.txt";
    },
  });
  const [said] = await texts(
    python,
    `${CATCHES}a, b = [refused(remove, path) for path in ("new.txt", "old.txt")]
print(search("cat"), a, b, sep="|")`,
  );
  const refusal = "PermissionError: the call of `remove` was not approved";
  assert.equal(said, `['cat0', 'cat1']|${refusal}|{'removed': 'old.txt'}`);
  assert.deepEqual(asked.map(({ toolName, input }) => [toolName, input]), [
    ["remove", { path: "new.txt" }],
    ["remove", { path: "old.txt" }],
  ]);
  // The host saw one call: the approved one, under the number that was asked for.
  assert.deepEqual(removed, [["old.txt", asked[1]?.toolCallId]]);
  assert.notEqual(asked[0]?.toolCallId, asked[1]?.toolCallId);
  assert.match(descriptionOf(python), /Removes a file\.\n\n {4}A call needs approval/);
});

test("only `true` approves: no callback, another answer and an error refuse", async () => {
  const code = `${CATCHES}print(refused(remove, "a"))`;
  for (const [approve, expected] of [
    [undefined, "the call of `remove` needs approval, and there is nobody to ask"],
    [() => "yes" as never, "the call of `remove` was not approved"],
    [() => Promise.resolve(false), "the call of `remove` was not approved"],
    [
      () => Promise.reject(new Error("offline")),
      "the call of `remove` needs approval, and asking failed: offline",
    ],
  ] as const) {
    const { remove, removed } = files();
    const python = codeMode({ remove }, {
      needsApproval: { remove: true },
      ...(approve && { approve }),
    });
    assert.deepEqual(await texts(python, code), [`PermissionError: ${expected}`]);
    assert.deepEqual(removed, []);
  }
});

test("functions say which calls need approval, and see checked inputs", async () => {
  const { remove, removed } = files();
  const seen: unknown[] = [];
  let approvals = 0;
  const python = codeMode({
    remove: {
      ...remove,
      inputSchema: z.object({ path: z.string().trim() }),
      needsApproval: ({ path }: { path: string }) => {
        seen.push(path);
        return path.startsWith("/");
      },
    },
  }, {
    // It adds to what the tool says, and takes nothing away.
    needsApproval: { remove: (input) => (input as { path: string }).path === "b" },
    approve: () => {
      approvals += 1;
      return false;
    },
  });
  const code = `${CATCHES}print(*[str(refused(remove, p))[:15] for p in (" /etc", "a", "b")])`;
  const [said] = await texts(python, code);
  assert.equal(said, "PermissionError {'removed': 'a' PermissionError");
  assert.deepEqual(seen, ["/etc", "a", "b"]);
  assert.equal(approvals, 2);
  assert.deepEqual(removed.map((each) => (each as unknown[])[0]), ["a"]);
});

test("an approval that comes after the code was ended calls nothing", async () => {
  const { remove, removed } = files();
  let answered: Promise<unknown> = Promise.resolve();
  const python = codeMode({ remove }, {
    needsApproval: { remove: true },
    limits: { hostTime: 0.2 },
    approve: ({ abortSignal }) => {
      const late = new Promise<boolean>((resolve) => {
        abortSignal.addEventListener("abort", () => resolve(true), { once: true });
      });
      answered = late;
      return late;
    },
  });
  const [said] = await texts(python, "remove('a')");
  assert.match(String(said), /host|time/i);
  assert.equal(await answered, true);
  await new Promise(setImmediate);
  assert.deepEqual(removed, []);
});

test("a call that is approved after the whole call was aborted is not made", async () => {
  const { remove, removed } = files();
  const controller = new AbortController();
  let approvals = 0;
  const { execute } = codeMode({ remove }, {
    needsApproval: { remove: true },
    approve: () => {
      approvals += 1;
      controller.abort(new Error("enough"));
      return true;
    },
  });
  const { signal: abortSignal } = controller;
  const options = { toolCallId: "call", messages: [], context: {}, abortSignal };
  await assert.rejects(async () => await execute({ code: "remove('a')" }, options), /enough/);
  assert.equal(approvals, 1);
  assert.deepEqual(removed, []);
});

test("calls at the same time have sessions and numbers of their own", async () => {
  let release = () => {};
  const both = new Promise<void>((resolve) => {
    release = resolve;
  });
  const seen: string[] = [];
  const meet = tool({
    inputSchema: z.object({}),
    execute: async (_, { toolCallId }) => {
      seen.push(toolCallId.split(".")[0] ?? "");
      if (seen.length === 2) release();
      await both;
      return toolCallId.split(".")[0] ?? "";
    },
  });
  const { execute } = codeMode({ meet });
  const results = await Promise.all(
    ["one", "two"].map((toolCallId) =>
      execute({ code: "print('x' in globals(), meet())\nx = 1" }, {
        toolCallId,
        messages: [],
        context: {},
      })
    ),
  );
  assert.deepEqual(
    results.map((result) => "text" in result && result.text),
    ["False one", "False two"],
  );
  assert.deepEqual(seen.sort(), ["one", "two"]);
});

test("a given session keeps variables, and its functions serve a model's calls only", async () => {
  const { remove, removed } = files();
  await using session = await new Sandbox({ limits: { runTime: 20 } }).session();
  const python = codeMode({ remove }, { session });
  const said = await texts(python, "x = remove('a')", "x");
  assert.deepEqual(said, ["[no output]", "{'removed': 'a'}"]);
  assert.equal(removed.length, 1);
  // Code that no model's call runs has no call to act for.
  const outside = await session.run("remove('b')");
  assert.match(String(outside.failure), /called after the code had ended/);
  assert.equal(removed.length, 1);
  await session.reset();
  assert.deepEqual(await texts(python, "remove('c')"), ["{'removed': 'c'}"]);
});

test("code that would wait for itself gets an exception", async () => {
  await using session = await new Sandbox().session();
  const python = codeMode({ again: pythonTool(session) }, { session });
  const [said, after] = await texts(python, `${CATCHES}print(refused(again, "1"))`, "1 + 1");
  assert.match(String(said), /^BusyError: the code of a session cannot run further code in it/);
  assert.equal(after, "2");
});

test("tools get their context, and are not called with one that does not fit", async () => {
  const seen: unknown[] = [];
  const whoami = tool({
    description: ({ context }) => `Says who ${context?.user} is.`,
    inputSchema: z.object({}),
    contextSchema: z.object({ user: z.string() }),
    execute: (_, { context }) => {
      seen.push(context.user);
      return context.user;
    },
  });
  const python = codeMode({ whoami }, { toolsContext: { whoami: { user: "ada" } } });
  assert.match(descriptionOf(python), /Says who ada is\./);
  assert.deepEqual(await texts(python, "whoami()"), ["'ada'"]);
  const [wrong] = await texts(codeMode({ whoami }), "whoami()");
  assert.match(String(wrong), /TypeError/);
  assert.deepEqual(seen, ["ada"]);
});

test("tools take inputs of any shape", async () => {
  const echo = (input: unknown) => input;
  const variants = [{ type: "object", properties: { a: { type: "integer" } } }] as const;
  const python = codeMode({
    either: tool({ inputSchema: jsonSchema({ oneOf: [...variants] }), execute: echo }),
    open: tool({ inputSchema: z.looseObject({}), execute: echo }),
    nothing: tool({ inputSchema: z.object({}), execute: echo }),
    "class": tool({ inputSchema: z.object({ "": z.int() }), execute: echo }),
  });
  const code = "print(either(a=1), open(), open(b=[2]), nothing(), class_({'': 3}), sep='|')";
  assert.deepEqual(await texts(python, code, "nothing(1)").then(([said, wrong]) => [
    said,
    /TypeError/.test(String(wrong)),
  ]), ["{'a': 1}|{}|{'b': [2]}|{}|{'': 3}", true]);
});

test("code has no more permissions than the options give", async () => {
  const { search } = files();
  const [denied, limited] = await texts(
    codeMode({ search }, { limits: { toolCalls: 3 } }),
    `${CATCHES}print(refused(open, "/etc/passwd"))`,
    "for _ in range(9): search('cat')",
  );
  assert.match(String(denied), /FileNotFoundError/);
  assert.match(String(limited), /limit/);
});

test("what cannot be called is refused when the tool is made", async () => {
  const { remove } = files();
  const inputSchema = z.object({});
  const client = tool({ inputSchema, outputSchema: z.string() });
  assert.throws(() => codeMode({ client }), /`client` has no `execute`/);
  assert.throws(() => codeMode({ "a-b": remove, a_b: remove }), /are both `a_b` in Python/);
  assert.throws(() => codeMode({ remove }, { needsApproval: { remvoe: true } }), /no such tool/);
  assert.throws(() => codeMode({}, { wrong: 1 } as never), ConfigError);
  await using session = await new Sandbox().session();
  assert.throws(() => codeMode({}, { session, offline: true }), /`session` has a policy/);
});
