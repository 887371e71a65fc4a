// Options that are not what they have to be: each is refused in the words of this package.

import assert from "node:assert/strict";
import { test } from "node:test";

import * as isolet from "../src/index.js";
import { inOwnWords, snake } from "../src/names.js";
import {
  type AttachOptions,
  Client,
  type ClientOptions,
  type SessionOptions,
} from "../src/node.js";

/** Wrong values, each with what the error says of it. */
type Wrong = readonly (readonly [value: unknown, message: string])[];
/** A row for each option: a new one without does not compile. */
type Table<Options> = { readonly [Name in keyof Required<Options>]: Wrong };

const FLAG = (name: string): Wrong => [
  ["yes", `\`${name}\` is "yes", and has to be true or false`],
  [1, `\`${name}\` is 1, and has to be true or false`],
];
const TEXT = (name: string): Wrong => [
  [1, `\`${name}\` is 1, and has to be a text`],
  [["a"], `\`${name}\` is an array, and has to be a text`],
];
const TEXTS = (name: string): Wrong => [
  ["a", `\`${name}\` is "a", and has to be an array of texts`],
  [["a", 1], `\`${name}[1]\` is 1, and has to be a text`],
];
const WHOLE = (name: string, least = 0): Wrong => {
  const expected = `and has to be a whole number, ${least} or more and less than 2^64`;
  const hint = " (hint: past 2^53 numbers are not exact: pass a bigint)";
  return [
    ["2", `\`${name}\` is "2", ${expected}`],
    [true, `\`${name}\` is true, ${expected}`],
    [1.5, `\`${name}\` is 1.5, ${expected}`],
    [NaN, `\`${name}\` is NaN, ${expected}`],
    [least - 1, `\`${name}\` is ${least - 1}, ${expected}`],
    [2n ** 64n, `\`${name}\` is 18446744073709551616n, ${expected}`],
    [2 ** 53, `\`${name}\` is 9007199254740992, ${expected}${hint}`],
  ];
};
const SECONDS = (name: string, expected: string, ...others: number[]): Wrong =>
  ["1", true, -1, NaN, Infinity, ...others].map((value) => {
    const shown = typeof value === "string" ? `"${value}"` : String(value);
    return [value, `\`${name}\` is ${shown}, and has to be a number of seconds, ${expected}`];
  });
const ANY_TIME = "0 or more and less than 2^64";
const LIMIT = "more than 0 and at most 3153600000";
const CALLBACK = (name: string): Wrong => [
  ["print", `\`${name}\` is "print", and has to be a function`],
  [{}, `\`${name}\` is an object, and has to be a function`],
];
const VARIABLES = (name: string): Wrong => [
  ["x", `\`${name}\` is "x", and has to be an object of variables by name`],
  [[1], `\`${name}\` is an array, and has to be an object of variables by name`],
];
const SECRET = (name: string): Wrong => [[1234, `\`${name}\` is a number, and has to be a text`]];

const LIMITS: Table<isolet.Limits> = {
  runTime: SECONDS("limits.runTime", LIMIT, 0, 1e30),
  hostTime: SECONDS("limits.hostTime", LIMIT, 0, 1e30),
  grace: SECONDS("limits.grace", "0 or more and at most 3153600000", 1e30),
  memoryBytes: WHOLE("limits.memoryBytes", 64 * 2 ** 20),
  stdoutBytes: WHOLE("limits.stdoutBytes"),
  stderrBytes: WHOLE("limits.stderrBytes"),
  valueBytes: WHOLE("limits.valueBytes"),
  sourceBytes: WHOLE("limits.sourceBytes"),
  callBytes: WHOLE("limits.callBytes"),
  displayBytes: WHOLE("limits.displayBytes"),
  displays: WHOLE("limits.displays"),
  files: WHOLE("limits.files"),
  outputLines: WHOLE("limits.outputLines"),
  toolCalls: WHOLE("limits.toolCalls"),
  concurrentTools: WHOLE("limits.concurrentTools", 1),
  refusals: WHOLE("limits.refusals"),
};

const MOUNT: Table<isolet.Mount> = {
  path: TEXT('mounts["/data"].path'),
  mode: [["r", '`mounts["/data"].mode` is "r", and has to be "ro", "overlay" or "rw"']],
  quotaBytes: WHOLE('mounts["/data"].quotaBytes'),
  quotaFiles: WHOLE('mounts["/data"].quotaFiles'),
};

const SUBMIT: Table<isolet.Submit> = {
  name: TEXT("submit.name"),
  fields: [
    ["x", '`submit.fields` is "x", and has to be an object of JSON schemas by name'],
    [{ a: 1 }, '`submit.fields["a"]` is 1, and has to be a JSON schema or true'],
  ],
};

const SECRET_OF: Table<isolet.Secret> = {
  value: SECRET('secrets["KEY"].value'),
  hosts: TEXTS('secrets["KEY"].hosts'),
  inBodies: FLAG('secrets["KEY"].inBodies'),
};

/** Each option in its place within others. */
const within = <Options>(table: Table<Options>, place: (value: object) => unknown): Wrong =>
  Object.entries(table as Record<string, Wrong>).flatMap(([name, wrong]) =>
    wrong.map(([value, message]) => [place({ [name]: value }), message] as const)
  );

const NAMED =
  " (hint: name it, `tools: { search }`, or describe it, `tools: [tool({ name, execute })]`)";
const TOOLS: Wrong = [
  ["x", '`tools` is "x", and has to be an object of functions by name, or an array of tools'],
  [[1], `\`tools[0]\` is 1, and has to be a function or a tool${NAMED}`],
  [[() => 1], `\`tools[0]\` is a function without a name${NAMED}`],
  [{ a: 1 }, `\`tools["a"]\` is 1, and has to be a function or a tool${NAMED}`],
];

const POLICY: Table<isolet.Policy> = {
  tools: TOOLS,
  submit: [
    ["x", '`submit` is "x", and has to be an object'],
    [{}, "`submit` has no `fields`, and has to have one"],
    ...within<isolet.Submit>(SUBMIT, (value) => ({ fields: {}, ...value })),
  ],
  mounts: [
    ["x", '`mounts` is "x", and has to be an object of directories by their path in the guest'],
    [{ "/d": 1 }, '`mounts["/d"]` is 1, and has to be a path, or an object with a `path`'],
    [{ "/d": {} }, '`mounts["/d"]` has no `path`, and has to have one'],
    [
      { "/d": { Path: "/" } },
      '`mounts["/d"]` has no key `Path`; it has path, mode, quotaBytes, quotaFiles',
    ],
    ...within<isolet.Mount>(MOUNT, (value) => ({ "/data": { path: ".", ...value } })),
  ],
  allowNet: TEXTS("allowNet"),
  denyNet: TEXTS("denyNet"),
  allowPublicNet: FLAG("allowPublicNet"),
  headers: [
    ["x", '`headers` is "x", and has to be an object of headers by origin'],
    [{ "http://a": "b" }, '`headers["http://a"]` is "b", and has to be an object of headers'],
    [{ "http://a": { X: 1234 } }, '`headers["http://a"]["X"]` is a number, and has to be a text'],
  ],
  secrets: [
    [["sk-canary"], "`secrets` is an array, and has to be an object of secrets by variable"],
    [
      { KEY: "sk-canary" },
      '`secrets["KEY"]` is a string, and has to be an object with `value` and `hosts`',
    ],
    [{ KEY: { hosts: [] } }, '`secrets["KEY"]` has no `value`, and has to have one'],
    [{ KEY: { value: "sk-canary" } }, '`secrets["KEY"]` has no `hosts`, and has to have one'],
    ...within<isolet.Secret>(SECRET_OF, (value) => ({
      KEY: { value: "sk-canary", hosts: ["a.example"], ...value },
    })),
  ],
  caFiles: TEXTS("caFiles"),
  env: [
    ["x", '`env` is "x", and has to be an object of texts'],
    [{ A: 1234 }, '`env["A"]` is a number, and has to be a text'],
  ],
  allowEnv: TEXTS("allowEnv"),
  packages: TEXTS("packages"),
  allowPackages: TEXTS("allowPackages"),
  preload: TEXTS("preload"),
  wheels: TEXTS("wheels"),
  bundle: FLAG("bundle"),
  offline: FLAG("offline"),
  limits: [
    [1, "`limits` is 1, and has to be an object"],
    ...within(LIMITS, (value) => value),
  ],
  isolation: [["vm", '`isolation` is "vm", and has to be "process" or "thread"']],
  require: TEXTS("require"),
  forkable: WHOLE("forkable"),
  checkpoint: FLAG("checkpoint"),
  seed: WHOLE("seed"),
  startTime: [
    ["2030", '`startTime` is "2030", and has to be a Date that is valid'],
    [new Date(NaN), "`startTime` is an invalid Date, and has to be a Date that is valid"],
    [5, "`startTime` is 5, and has to be a Date that is valid"],
  ],
  onAudit: CALLBACK("onAudit"),
};

const CALLBACKS: Table<isolet.OutputCallbacks> = {
  onStdout: CALLBACK("onStdout"),
  onStderr: CALLBACK("onStderr"),
  onDisplay: CALLBACK("onDisplay"),
};

const STREAM: Table<isolet.StreamOptions> = {
  inputs: VARIABLES("inputs"),
  timeout: SECONDS("timeout", ANY_TIME, 1e30),
  stdin: [[1, "`stdin` is 1, and has to be a text or bytes"]],
  argv: TEXTS("argv"),
  name: TEXT("name"),
  workingDirectory: TEXT("workingDirectory"),
  program: FLAG("program"),
  keepVariables: FLAG("keepVariables"),
  allowReturn: FLAG("allowReturn"),
  syntax: [
    ["ruby", '`syntax` is "ruby", and has to be "python", "command", "ipython" or "shell"'],
  ],
  tableData: FLAG("tableData"),
  chartPictures: FLAG("chartPictures"),
  signal: [
    ["x", '`signal` is "x", and has to be an AbortSignal'],
    [
      new AbortController(),
      "`signal` is an object of the class AbortController, and has to be an AbortSignal",
    ],
  ],
};
const RUN: Table<isolet.RunOptions> = { ...STREAM, ...CALLBACKS };

const JOURNAL: Table<isolet.Journal> = {
  path: TEXT("journal.path"),
  sync: [["maybe", '`journal.sync` is "maybe", and has to be "never" or "always"']],
  maxBytes: WHOLE("journal.maxBytes"),
  whenFull: [["x", '`journal.whenFull` is "x", and has to be "end_session" or "end_recording"']],
};
const JOURNALS: Wrong = [
  [1, "`journal` is 1, and has to be a path, or an object with a `path`"],
  ...within<isolet.Journal>(JOURNAL, (value) => ({ path: "x", ...value })),
];

const REPLAY: Table<isolet.ReplayOptions> = {
  untilCall: WHOLE("untilCall"),
  untilTime: SECONDS("untilTime", ANY_TIME),
  untilLine: ["x", 1.5, ["a"], ["a", "b"]].map((value) => {
    const shown = Array.isArray(value) ? "an array" : JSON.stringify(value);
    const expected = "the number of a line, or an array of a file and such a number";
    return [value, `\`untilLine\` is ${shown}, and has to be ${expected}`];
  }),
};

const SERVER: Table<isolet.ServerOptions> = {
  binary: TEXT("binary"),
  assets: TEXT("assets"),
  maxSessions: WHOLE("maxSessions", 1),
  env: POLICY.env,
};

const TOOL: Table<isolet.ToolOptions<isolet.JsonSchema>> = {
  name: TEXT("tool.name"),
  description: TEXT("tool.description"),
  parameters: [["x", '`tool.parameters` is "x", and has to be a schema']],
  returns: [["x", '`tool.returns` is "x", and has to be an object of keywords of JSON Schema']],
  style: [["x", '`tool.style` is "x", and has to be "plain" or "async"']],
  timeout: SECONDS("tool.timeout", ANY_TIME),
  maxCalls: WHOLE("tool.maxCalls"),
  idempotent: FLAG("tool.idempotent"),
  execute: CALLBACK("tool.execute"),
};

/** Calls what takes options, once with each wrong value, and compares what it throws. */
async function refused(
  table: Readonly<Record<string, Wrong>>,
  call: (options: never) => unknown,
): Promise<void> {
  for (const [name, wrong] of Object.entries(table)) {
    for (const [value, message] of wrong) {
      const caught = await Promise.resolve()
        .then(() => call({ [name]: value } as never))
        .then(() => assert.fail(`${name} was taken`), (error: unknown) => error);
      assert.ok(caught instanceof isolet.ConfigError, String(caught));
      assert.equal(caught.message, message);
    }
  }
}

test("options of a policy, with their limits, mounts and fields", async () => {
  await refused(POLICY, (options) => new isolet.Sandbox(options));
  await refused(POLICY, (options) => isolet.run("1", options));
  const server = { server: [["x", '`server` is "x", and has to be a Server']] } as const;
  await refused(server, (options) => new isolet.Sandbox(options));
  await refused(SERVER, (options) => new isolet.Server(options));
});

test("options of runs", async () => {
  await using session = await new isolet.Sandbox().session();
  await refused(RUN, (options) => session.run("1", options));
  await refused(RUN, (options) => isolet.run("1", options));
  await refused({ ...RUN, syntax: [] }, (options) => session.sh("true", options));
  await refused(STREAM, (options) => session.stream("1", options).next());
  await refused(CALLBACKS, (options) => session.goOn(options));
  // Nothing has run, and the session goes on.
  assert.equal(await session.eval("1 + 1"), 2);
});

test("options of sessions, journals and tools", async () => {
  const sandbox = new isolet.Sandbox();
  await refused({ inputs: VARIABLES("inputs"), journal: JOURNALS }, (options) =>
    sandbox.session(options)
  );
  await refused(REPLAY, (options) => sandbox.replay("x", options));
  await refused({ journal: JOURNALS }, ({ journal }) => sandbox.resume(journal));
  await using session = await sandbox.session();
  await refused({ journal: JOURNALS }, ({ journal }) => session.record(journal));
  await refused({ tools: TOOLS }, ({ tools }) => session.register(tools));
  await refused(TOOL, (options: object) =>
    isolet.tool({ name: "x", execute: () => 1, ...options })
  );
});

test("options of clients of nodes", async () => {
  const client: Table<ClientOptions> = { key: SECRET("key"), spread: FLAG("spread") };
  await refused(client, (options) => new Client("http://localhost:1", options));
  const nodes = new Client("http://localhost:1");
  const session: Table<Omit<SessionOptions, keyof isolet.Policy>> = {
    inputs: VARIABLES("inputs"),
    wait: SECONDS("wait", ANY_TIME),
    ttl: SECONDS("ttl", ANY_TIME),
    durable: FLAG("durable"),
  };
  await refused({ ...POLICY, ...session }, (options) => nodes.session(options));
  const job = { ...POLICY, ...RUN, wait: session.wait };
  await refused(job, (options) => nodes.run("1", options));
  const begun = { ...POLICY, ...STREAM, wait: session.wait };
  await refused(begun, (options) => nodes.startRun("1", options));
  const attach: Table<AttachOptions> = {
    token: SECRET("token"),
    tools: TOOLS,
    wait: session.wait,
  };
  await refused(attach, (options) => nodes.attach("x", options));
});

test("arguments of sessions and their files", async () => {
  const sandbox = new isolet.Sandbox();
  await using session = await sandbox.session();
  const all: Readonly<Record<string, [string, (value: never) => unknown]>> = {
    run: ["code", (code) => session.run(code)],
    stream: ["code", (code) => session.stream(code).next()],
    sh: ["code", (code) => session.sh(code)],
    get: ["name", (name) => session.get(name)],
    delete: ["name", (name) => session.delete(name)],
    loadPackages: ["requirements[0]", (name) => session.loadPackages(name)],
    save: ["file", (file) => session.save(file)],
    restore: ["file", (file) => sandbox.restore(file)],
    replay: ["file", (file) => sandbox.replay(file)],
    put: ["path", (path) => session.files.put(path, "")],
    read: ["path", (path) => session.files.get(path)],
    list: ["path", (path) => session.files.list(path)],
    remove: ["path", (path) => session.files.remove(path)],
  };
  for (const [name, [argument, call]] of Object.entries(all)) {
    await refused({ [name]: TEXT(argument).slice(0, 1) }, (options) => call(options[name]));
  }
  await refused({ values: VARIABLES("values") }, ({ values }) => session.set(values));
  await refused({ submit: POLICY.submit }, ({ submit }) => session.setSubmit(submit));
  const contents = { contents: [[1, "`contents` is 1, and has to be a text or bytes"]] } as const;
  await refused(contents, ({ contents: given }) => session.files.put("x", given));
});

test("options that are no object are refused", async () => {
  await using session = await new isolet.Sandbox().session();
  for (const call of [
    () => session.run("1", 1 as never),
    () => session.run("1", null as never),
    () => session.sh("true", "x" as never),
    async () => new isolet.Sandbox([] as never),
    () => isolet.run("1", "x" as never),
  ]) {
    await assert.rejects(call, /the options of `\w+` are .*, and have to be an object/);
  }
});

test("the server takes what is at the edge, and what is null as left out", async () => {
  const limits = {
    runTime: 3_153_600_000,
    hostTime: 3_153_600_000,
    grace: 0,
    memoryBytes: 64 * 2 ** 20,
    stdoutBytes: 0,
    displays: 2n ** 64n - 1n as never,
    concurrentTools: 1,
  };
  const left = { forkable: null, submit: null, env: null, tools: null } as never;
  const given = { limits, seed: 2n ** 64n - 1n, startTime: new Date(0) };
  const sandbox = new isolet.Sandbox({ ...given, ...left as object });
  await using session = await sandbox.session({ inputs: null as never });
  const timeout = 2 ** 63;
  const run = await session.run("1", { timeout, stdin: new Uint8Array(1), argv: null as never });
  assert.equal(run.value, 1);
});

test("what the server says of an option has its name of this package", async () => {
  const tables: readonly Readonly<Record<string, unknown>>[] = [POLICY, STREAM, JOURNAL, REPLAY];
  const limits = Object.keys(LIMITS).map((name) => `limits.${name}`);
  for (const name of [...tables.flatMap((table) => Object.keys(table)), ...limits]) {
    const said = inOwnWords(`\`${snake(name)}\` is 1, see \`a_b\``);
    assert.equal(said, `\`${name}\` is 1, see \`a_b\``);
  }
  const sandbox = new isolet.Sandbox({ startTime: new Date(0), limits: { runTime: 0.2 } });
  await assert.rejects(sandbox.session(), /`startTime` needs a `seed`/);
  const run = await isolet.run("while True: pass", { limits: { runTime: 0.2 } });
  assert.match(String(run.failure), /`limits\.runTime`/);
});
