// Durable sessions, whose node is killed and started again.

import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import os from "node:os";
import path from "node:path";
import { after, before, test } from "node:test";

import * as isolet from "../src/index.js";
import { Client } from "../src/node.js";
import { NodeProcess } from "./node_process.js";

const SECONDS = 30;

let scratch: string;
before(async () => {
  scratch = await mkdtemp(path.join(os.tmpdir(), "isolet-"));
});
after(() => rm(scratch, { recursive: true }));

/** Where a node is that is started again: its arguments. */
function place(name: string): [args: string[], listen: string] {
  return [["--journals", path.join(scratch, name)], `unix:${path.join(scratch, `${name}.sock`)}`];
}

type Item = isolet.Output | isolet.Display | isolet.Execution;

/** Adds what a stream yields. */
async function heard(items: AsyncIterable<Item>, to: Item[]): Promise<void> {
  for await (const item of items) to.push(item);
}

function textOf(items: readonly Item[]): string {
  return items.map((item) => (item.kind === "output" ? item.text : "")).join("");
}

function endOf(items: readonly Item[]): isolet.Execution {
  const last = items.at(-1);
  assert.ok(last?.kind === "execution");
  return last;
}

test("a durable run goes on with another client after its node was killed", async () => {
  const [args, address] = place("again");
  const asked: number[] = [];
  let node = await NodeProcess.start(args, address);
  const tools = {
    ask: async (number: number) => {
      asked.push(number);
      // Its answer reaches no node.
      if (asked.length === 2) await node.kill();
      return number * 10;
    },
  };
  const code = "first = ask(1)\nprint('first', first, flush=True)\nprint('second', ask(2))\nfirst";
  try {
    const session = await new Client(address).session({ tools, durable: true });
    const items: Item[] = [];
    await assert.rejects(heard(session.stream(code), items), isolet.ServerDiedError);
    node = await NodeProcess.start(args, address);
    const token = session.token ?? "";
    const again = await new Client(address).attach(session.id, { token, tools, wait: SECONDS });
    const { lastRun, cursor } = session;
    await heard(again.reattach(lastRun, cursor, { wait: SECONDS }), items);
    assert.equal(textOf(items), "first 10\nsecond 20\n");
    assert.equal(endOf(items).value, 10);
    assert.deepEqual(asked, [1, 2, 2], "the call that waited is told to the new client");
    assert.equal(await again.get("first"), 10);
    assert.deepEqual([again.lastRun, await again.eval("first + 1"), again.lastRun], [1, 11, 2]);
    await again.close();
    await assert.rejects(new Client(address).attach(session.id), isolet.SessionClosedError);
  } finally {
    await node.kill();
  }
});

test("a client that waits goes on by itself when its node is back", async () => {
  const [args, address] = place("back");
  const node = await NodeProcess.start(args, address);
  const tools = { stop: () => node.kill() };
  const session = await new Client(address).session({ tools, durable: true });
  await assert.rejects(session.run("print('a', flush=True)\nstop()\n7"), isolet.ServerDiedError);
  const items: Item[] = [];
  const waiting = heard(session.reattach(undefined, undefined, { wait: SECONDS }), items);
  await using _again = await NodeProcess.start(args, address);
  await waiting;
  assert.deepEqual([textOf(items), endOf(items).value, endOf(items).stdout], ["", 7, "a\n"]);
});

test("the result of a run that was started waits for any client", async () => {
  const [args, address] = place("result");
  const tools = { ask: (number: number) => number * 10 };
  let node = await NodeProcess.start(args, address);
  try {
    const options = { inputs: { n: 7 }, tools, argv: ["x"] };
    const session = await new Client(address).startRun("print(ask(n))\nn", options);
    const items: Item[] = [];
    await heard(session.reattach(), items);
    assert.equal(textOf(items), "70\n");
    await node.kill();
    node = await NodeProcess.start(args, address);
    const token = session.token ?? "";
    const again = await new Client(address).attach(session.id, { token, wait: SECONDS });
    await heard(again.reattach(1, undefined, { wait: SECONDS }), items);
    assert.deepEqual([endOf(items).stdout, endOf(items).value], ["70\n", 7]);
    await again.close();
    await assert.rejects(new Client(address).attach(session.id), isolet.SessionClosedError);
  } finally {
    await node.kill();
  }
});

test("a durable run goes on when its stream is left, and ends when it is aborted", async () => {
  const [args, address] = place("left");
  await using _node = await NodeProcess.start(args, address);
  let goOn: (value: string) => void = () => {};
  const released = new Promise<string>((resolve) => {
    goOn = resolve;
  });
  const tools = { ask: () => released };
  await using session = await new Client(address).session({ tools, durable: true });
  let seen = "";
  for await (const item of session.stream("print('a', flush=True)\nprint(ask())\n1")) {
    seen += textOf([item]);
    if (seen === "a\n") break;
  }
  goOn("b");
  const items: Item[] = [];
  await heard(session.reattach(), items);
  assert.deepEqual([textOf(items), endOf(items).value], ["b\n", 1]);
  const controller = new AbortController();
  const { signal } = controller;
  const onStdout = () => controller.abort(new Error("stop"));
  const code = "x = 1\nprint('on', flush=True)\nwhile True: pass";
  await assert.rejects(session.run(code, { signal, onStdout }), /stop/);
  assert.equal(await session.eval("x"), 1);
});

test("what was not begun or is no cursor is refused", async () => {
  const [args, address] = place("none");
  await using _node = await NodeProcess.start(args, address);
  await using session = await new Client(address).session({ durable: true });
  await assert.rejects(session.reattach().next(), /this object has begun no run/);
  await assert.rejects(session.reattach(1, "x").next(), /`cursor` is "x"/);
  await session.run("1");
  await assert.rejects(session.reattach(7).next(), isolet.SessionClosedError);
  await using plain = await NodeProcess.start();
  const refused = new Client(plain.address).session({ durable: true });
  await assert.rejects(refused, isolet.ConfigError);
});
