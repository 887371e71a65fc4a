// The cell: runs code in a session, and shows what comes of it as it comes.

import * as api from "./api.js";
import { size, time } from "./facts.js";
import { Output, visible } from "./output.js";
import { short } from "./sessions.js";

const EXAMPLE = `import sys, time

for step in range(3):
    print("step", step)
    time.sleep(0.2)

sys.version`;

const ONCE = "once";
const KEEP = "keep";

const at = (/** @type {string} */ id) => /** @type {HTMLElement} */ (document.getElementById(id));
const code = /** @type {HTMLTextAreaElement} */ (at("code"));
const where = /** @type {HTMLSelectElement} */ (at("where"));
const run = /** @type {HTMLButtonElement} */ (at("run"));
const stop = /** @type {HTMLButtonElement} */ (at("interrupt"));
const state = at("run-state");
const output = new Output(at("output"));

/** The session of the run under way, and whether it ends with the run. */
let running = /** @type {string | null} */ (null);
let ends = false;

/**
 * @param {string} text
 * @param {string} [kind]
 */
function say(text, kind = "") {
  state.textContent = text;
  state.dataset.kind = kind;
}

/**
 * Chooses a session for the next runs.
 *
 * @param {string} id
 */
export function use(id) {
  offer(id);
  where.value = id;
  code.focus();
}

/** @param {string} id */
function offer(id) {
  if ([...where.options].some((option) => option.value === id)) return;
  where.add(new Option(short(id), id));
}

/**
 * Offers the sessions that there are.
 *
 * @param {string[]} ids
 */
export function offerSessions(ids) {
  for (const option of [...where.options]) {
    const isOfNone = option.value === ONCE || option.value === KEEP;
    if (!isOfNone && !ids.includes(option.value) && option.value !== running) option.remove();
  }
}

/** The end of a run in words. */
function ended(/** @type {any} */ execution) {
  const { status, usage, exception, exit_code: exit, termination } = execution;
  const used = `${time(usage.wall_time)}, ${size(usage.peak_memory_bytes)} at the peak`;
  const words = {
    completed: "Completed",
    submitted: "Submitted",
    raised: `Raised ${visible(exception?.type ?? "")}`,
    exited: `Exited with ${exit}`,
    terminated: `Ended by the node (${termination?.kind})`,
  };
  const lost = execution.session_alive === false && !ends ? ". The session has ended" : "";
  const isBad = ["raised", "terminated"].includes(status) || (status === "exited" && exit !== 0);
  say(`${words[status] ?? status}: ${used}${lost}`, isBad ? "bad" : "good");
}

/** Shows what comes only with the end. */
function showEnd(/** @type {any} */ execution) {
  output.note(execution.exception?.traceback ?? "", "error");
  output.note(execution.termination?.message ?? "", "error");
  const hasShown = execution.displays?.some((/** @type {any} */ display) => display.is_result);
  const repr = execution.repr ?? "None";
  if (repr !== "None" && !hasShown) output.note(repr, "value");
  output.note(execution.value_error ? `The value: ${execution.value_error}` : "", "note");
  const files = (execution.files ?? []).map(
    (/** @type {any} */ file) => `${file.path} (${size(file.size)})`,
  );
  output.note(files.length > 0 ? `Files: ${files.join(", ")}` : "", "note");
  const cut = execution.truncated ?? {};
  const bytes = (cut.stdout_bytes ?? 0) + (cut.stderr_bytes ?? 0);
  if (bytes > 0) output.note(`${size(bytes)} of output are left out.`, "note");
  if (cut.displays > 0) output.note(`${cut.displays} displays are left out.`, "note");
  ended(execution);
}

/** Runs the code. `changed` is called when the sessions may be others. */
async function runCode(/** @type {() => void} */ changed) {
  if (running !== null || run.disabled) return;
  run.disabled = true;
  output.clear();
  say("Starting a session");
  try {
    ends = where.value === ONCE;
    const isNew = ends || where.value === KEEP;
    const id = isNew ? (await api.create()).id : where.value;
    running = id;
    if (where.value === KEEP) use(id);
    changed();
    say("Running");
    stop.disabled = false;
    for await (const event of api.run(id, code.value)) {
      if (event.type === "stdout" || event.type === "stderr") output.write(event.type, event.text);
      else if (event.type === "display") output.display(event.display.data);
      else if (event.type === "end") showEnd(event.execution);
      else if (event.type === "error") throw new api.Problem(0, event.problem.detail);
    }
  } catch (error) {
    say(`Not run: ${visible(/** @type {Error} */ (error).message)}`, "bad");
  }
  const left = running;
  running = null;
  stop.disabled = true;
  run.disabled = false;
  // It may have ended by itself.
  if (left !== null && ends) await api.end(left).catch(() => undefined);
  changed();
}

async function interruptRun() {
  if (running === null || stop.disabled) return;
  say("Interrupting");
  await api.interrupt(running).catch((error) => say(error.message, "bad"));
}

/** Begins a line as far in as the one before it. */
function indent(/** @type {KeyboardEvent} */ event) {
  const before = code.value.slice(0, code.selectionStart);
  const line = before.slice(before.lastIndexOf("\n") + 1);
  const own = line.slice(0, line.length - line.trimStart().length);
  const depth = line.trimEnd().endsWith(":") ? `${own}    ` : own;
  if (depth === "") return;
  event.preventDefault();
  // Unlike a change of the value, it can be undone.
  document.execCommand("insertText", false, `\n${depth}`);
}

function showCurl() {
  const body = JSON.stringify({ code: code.value }).replaceAll("'", "'\\''");
  const key = api.hasKey() ? ` \\\n  -H "Authorization: Bearer $ISOLET_KEY"` : "";
  at("curl").textContent = `curl -s ${location.origin}/v1/run${key} \\\n  -d '${body}'`;
}

async function copyCurl() {
  const text = at("curl").textContent ?? "";
  try {
    await navigator.clipboard.writeText(text);
    at("copied").textContent = "Copied";
  } catch {
    // A page without TLS may not copy, except of this machine.
    getSelection()?.selectAllChildren(at("curl"));
    at("copied").textContent = "Selected: copy it with the keyboard";
  }
}

/** @param {() => void} changed */
export function begin(changed) {
  code.value = EXAMPLE;
  showCurl();
  code.addEventListener("input", showCurl);
  run.addEventListener("click", () => runCode(changed));
  stop.addEventListener("click", interruptRun);
  at("copy").addEventListener("click", copyCurl);
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") interruptRun();
    else if (event.target !== code || event.key !== "Enter" || event.isComposing) return;
    else if (event.ctrlKey || event.metaKey) {
      event.preventDefault();
      runCode(changed);
    } else if (!event.shiftKey) indent(event);
  });
  addEventListener("pagehide", () => {
    if (running !== null && ends) api.end(running).catch(() => undefined);
  });
}

export { showCurl };
