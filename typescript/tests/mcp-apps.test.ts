// The page of `isolet mcp` on which clients of MCP Apps show displays: with the official client,
// the host bridge of the official package, and a browser.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import process from "node:process";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

import { Client } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import {
  getToolUiResourceUri,
  RESOURCE_MIME_TYPE,
} from "@modelcontextprotocol/ext-apps/app-bridge";
import { chromium } from "playwright-core";

import { findBinary } from "../src/binary.js";

const PACKAGE = fileURLToPath(new URL("../../", import.meta.url));
// It bundles what the browser gets. Its package's own program needs a script of the installation.
const PLATFORM = `${process.platform}-${process.arch}`;
const BUN = path.join(PACKAGE, `node_modules/@oven/bun-${PLATFORM}/bin/bun`);
const BROWSERS = ["/usr/bin/chromium", "/usr/bin/chromium-browser"];
const BROWSER = BROWSERS.find((file) => existsSync(file));

// A host, which shows the page of a tool, and passes the result on.
const HOST = `
import { AppBridge, PostMessageTransport } from "@modelcontextprotocol/ext-apps/app-bridge";
window.show = async (page, result) => {
  window.sizes = [];
  const frame = document.createElement("iframe");
  frame.sandbox = "allow-scripts";
  document.body.replaceChildren(frame);
  const bridge = new AppBridge(null, { name: "host", version: "1" }, {});
  const isReady = new Promise((resolve) => { bridge.oninitialized = resolve; });
  bridge.onsizechange = ({ height }) => { window.sizes.push(height); };
  await bridge.connect(new PostMessageTransport(frame.contentWindow, frame.contentWindow));
  frame.srcdoc = page;
  await isReady;
  await bridge.sendToolInput({ arguments: {} });
  await bridge.sendToolResult(result);
  window.end = () => bridge.teardownResource({});
};`;

const CODE = `
chart = {"type": "line", "title": "Waves", "elements": [
    {"label": "a", "points": [[0, 1], [1, 2]]}, {"label": "b", "points": [[0, 2], [1, 0]]}]}
display({"application/vnd.isolet.chart.v1+json": chart}, raw=True)
table = {"n": [3, 1, 2], "text": ["c", "<b>a</b>", "b"]}
display({"application/vnd.isolet.table.v1+json": table}, raw=True)`;

async function connected(mimeTypes: string[]): Promise<Client> {
  const extensions = { "io.modelcontextprotocol/ui": { mimeTypes } };
  const client = new Client({ name: "test", version: "1" }, { capabilities: { extensions } });
  const env = { ...process.env } as Record<string, string>;
  const server = { command: findBinary(undefined), args: ["mcp"], env };
  await client.connect(new StdioClientTransport(server));
  return client;
}

async function uiOf(client: Client): Promise<string | undefined> {
  const { tools } = await client.listTools();
  const tool = tools.find(({ name }) => name === "run_python");
  assert.ok(tool);
  return getToolUiResourceUri(tool);
}

/** Returns the host as a script. */
function bundled(): string {
  const directory = mkdtempSync(path.join(os.tmpdir(), "isolet-"));
  try {
    const file = path.join(directory, "host.js");
    // The bundler looks for packages from the file on.
    const source = path.join(PACKAGE, "build", `host-${process.pid}.js`);
    writeFileSync(source, HOST);
    const args = ["build", source, "--target", "browser", "--format", "iife", "--outfile", file];
    const { status, stderr } = spawnSync(BUN, args, { encoding: "utf8", timeout: 60_000 });
    rmSync(source);
    assert.equal(status, 0, stderr);
    return readFileSync(file, "utf8");
  } finally {
    rmSync(directory, { recursive: true });
  }
}

test("a client of other pages is not told of the page", async () => {
  const client = await connected(["text/html"]);
  assert.equal(await uiOf(client), undefined);
  const result = await client.callTool({ name: "run_python", arguments: { code: CODE } });
  assert.equal(result._meta, undefined);
  await client.close();
});

const skip = BROWSER === undefined && "there is no Chromium to look at the page with";

test("the official host shows charts and tables of a run", { skip, timeout: 110_000 }, async () => {
  const client = await connected([RESOURCE_MIME_TYPE]);
  const uri = await uiOf(client);
  assert.ok(uri);
  const [page] = (await client.readResource({ uri })).contents;
  assert.ok(page !== undefined && "text" in page && page.mimeType === RESOURCE_MIME_TYPE);
  const result = await client.callTool({ name: "run_python", arguments: { code: CODE } });
  assert.equal(result.isError, false);
  await client.close();

  const executablePath = String(BROWSER);
  const browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });
  try {
    const host = await browser.newPage();
    const asked: string[] = [];
    host.on("request", (request) => asked.push(request.url()));
    const failed: string[] = [];
    host.on("pageerror", (error) => failed.push(error.message));
    await host.setContent("<body></body>");
    await host.addScriptTag({ content: bundled() });
    const show = "([page, result]) => window.show(page, result)";
    await host.evaluate(`(${show})(${JSON.stringify([page.text, result])})`);
    const frame = host.frames()[1];
    assert.ok(frame);
    await frame.locator("tbody td").first().waitFor();
    assert.deepEqual(await frame.locator("figcaption").allTextContents(), ["Waves"]);
    const cells = () => frame.locator("tbody td").allTextContents();
    assert.deepEqual(await cells(), ["3", "c", "1", "<b>a</b>", "2", "b"]);
    await frame.locator("th").first().click();
    assert.deepEqual(await cells(), ["1", "<b>a</b>", "2", "b", "3", "c"]);
    const lines = frame.locator("path.series");
    assert.equal(await lines.count(), 2);
    const series = frame.locator(".legend button").first();
    await series.click();
    const pressed = await series.getAttribute("aria-pressed");
    assert.deepEqual([await lines.count(), pressed], [1, "false"]);
    assert.ok(Number(await host.evaluate("window.sizes.at(-1)")) > 200);
    assert.deepEqual(await host.evaluate("window.end()"), {});
    assert.deepEqual([asked, failed], [[], []]);
  } finally {
    await browser.close();
  }
});
