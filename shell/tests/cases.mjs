// Compares the shell with bash: node cases.mjs MODULE CASES [part of a name]
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { Shell } from "./host.mjs";

const [file, directory, only = ""] = process.argv.slice(2);
const module = new WebAssembly.Module(fs.readFileSync(file));
const environment = { HOME: "/tmp", LC_ALL: "C.UTF-8", PATH: "/usr/bin:/bin", TZ: "UTC" };
process.umask(0o022);

/** The content that a part stands for. */
function content(head, body) {
  if (head.endsWith(" in hexadecimal")) return Buffer.from(body.replace(/\s/g, ""), "hex");
  if (head.endsWith(" without a final newline")) return Buffer.from(body.replace(/\n$/, ""));
  return Buffer.from(body);
}

function parse(text) {
  const [head, ...parts] = text.split(/^%% /m);
  const newline = head.indexOf("\n");
  const script = head.slice(newline + 1).replace(/\n+$/, "");
  const expected = { stdout: Buffer.alloc(0), status: 0, files: new Map() };
  let stdin = Buffer.alloc(0);
  for (const part of parts) {
    const end = part.indexOf("\n");
    const title = end < 0 ? part : part.slice(0, end);
    const body = end < 0 ? "" : part.slice(end + 1);
    const clean = title.replace(/ in hexadecimal$| without a final newline$/, "");
    const [kind, rest] = [clean.split(" ")[0], clean.slice(clean.indexOf(" ") + 1)];
    const [, name, mode] = /^(.*?)(?: mode (\d+))?$/.exec(rest);
    if (kind === "stdin") stdin = Buffer.from(body);
    else if (kind === "stdout") expected.stdout = content(title, body);
    else if (kind === "status") expected.status = Number(rest);
    else if (kind === "link") {
      const [link, target] = rest.split(" -> ");
      expected.files.set(link, `-> ${target}`);
    } else if (kind === "directory") expected.files.set(name, `directory ${mode ?? "755"}`);
    else expected.files.set(name, `${mode ?? "644"} ${content(title, body).toString("latin1")}`);
  }
  return { name: head.slice(0, newline), script, stdin, expected };
}

const octal = (stat) => (stat.mode & 0o7777).toString(8);

/** What is there after a case. */
function files(directory, prefix = "", found = new Map()) {
  const names = fs.readdirSync(directory);
  if (names.length === 0 && prefix) {
    found.set(prefix.slice(0, -1), `directory ${octal(fs.statSync(directory))}`);
  }
  for (const name of names) {
    const at = path.join(directory, name);
    const stat = fs.lstatSync(at);
    if (stat.isSymbolicLink()) found.set(prefix + name, `-> ${fs.readlinkSync(at)}`);
    else if (stat.isDirectory()) files(at, `${prefix}${name}/`, found);
    else {
      const text = fs.readFileSync(at, "latin1");
      found.set(prefix + name, `${octal(stat)} ${text}`);
    }
  }
  return found;
}

const root = fs.mkdtempSync(path.join(os.tmpdir(), "shell-"));
let printed = [[], [], []];
const output = (_, descriptor, bytes) => printed[descriptor].push(bytes);
const make = () => new Shell(module, root, output);
let shell = make();
let [same, total] = [0, 0];
const began = Date.now();
for (const topic of fs.readdirSync(directory).sort()) {
  const texts = fs.readFileSync(path.join(directory, topic), "utf8");
  for (const text of texts.replace(/^%% case /, "").split("\n%% case ")) {
    const { name, script, stdin, expected } = parse(text);
    const title = `${topic.replace(".txt", "")}/${name}`;
    if (!title.includes(only)) continue;
    const place = path.join(root, "tmp/case");
    fs.rmSync(root, { recursive: true, force: true });
    fs.mkdirSync(place, { recursive: true });
    fs.mkdirSync(path.join(root, "dev"));
    printed = [[], [], []];
    const why = [];
    let status;
    try {
      const session = shell.session({ cwd: "/tmp/case", env: environment });
      status = shell.finish(session, { script }, stdin, () => ({ status: 127 })).status;
      shell.free(session);
    } catch (error) {
      why.push(`${error}`.slice(0, 200));
      shell = make();
    }
    const stdout = Buffer.concat(printed[1]);
    if (!stdout.equals(expected.stdout)) why.push("stdout");
    if (status !== expected.status) why.push(`status ${status} for ${expected.status}`);
    const found = files(place);
    for (const name of new Set([...found.keys(), ...expected.files.keys()])) {
      const [got, want] = [found.get(name), expected.files.get(name)];
      if (got !== want) why.push(`${name}: ${JSON.stringify(got)} for ${JSON.stringify(want)}`);
    }
    total += 1;
    if (why.length === 0) same += 1;
    else {
      const stderr = Buffer.concat(printed[2]);
      console.log(`#### ${title}: ${why.join("; ")}\n${script}`);
      console.log(`-- got\n${stdout}-- stderr\n${stderr}`);
    }
  }
}
fs.rmSync(root, { recursive: true, force: true });
console.log(`${same} of ${total} the same, in ${Date.now() - began} ms`);
