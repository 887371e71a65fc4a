// The console of a node: asks the node again and again what it is and which sessions it has.

import * as api from "./api.js";
import * as cell from "./cell.js";
import { showNode } from "./facts.js";
import { visible } from "./output.js";
import { showSessions } from "./sessions.js";

/** How often to ask, in milliseconds, and how often if the node does not answer. */
const OFTEN = 3000;
const SELDOM = 10_000;

const at = (/** @type {string} */ id) => /** @type {HTMLElement} */ (document.getElementById(id));
const form = at("key-form");
const field = /** @type {HTMLInputElement} */ (at("key"));
let timer = 0;
let asking = false;
let again = false;

/**
 * @param {string} text
 * @param {string} kind
 */
function say(text, kind) {
  const place = at("node-state");
  // A status that is read out is said once.
  if (place.textContent !== text) place.textContent = text;
  place.dataset.kind = kind;
}

/** @param {Error} error */
function failed(error) {
  const needsKey = error instanceof api.Problem && error.status === 401;
  if (needsKey && form.hidden) {
    form.hidden = false;
    if (document.activeElement === document.body) field.focus();
  }
  const why = api.hasKey() ? "The key is none of this node's" : "The node needs a key";
  say(needsKey ? why : visible(error.message), "bad");
}

async function refresh() {
  // One answer at a time, however often somebody asks.
  if (asking) {
    again = true;
    return;
  }
  asking = true;
  clearTimeout(timer);
  let pause = OFTEN;
  try {
    const [node, sessions] = await Promise.all([api.node(), api.sessions()]);
    form.hidden = true;
    at("key-forget").hidden = !api.hasKey();
    showNode(node);
    showSessions(sessions, cell.use, failed);
    cell.offerSessions(sessions.map((/** @type {{id: string}} */ { id }) => id));
    if (node.is_draining) say("Ends: takes no new sessions", "bad");
    else say("Ready", "good");
  } catch (error) {
    failed(/** @type {Error} */ (error));
    pause = SELDOM;
  }
  asking = false;
  if (again) {
    again = false;
    refresh();
  } else if (!document.hidden) timer = setTimeout(refresh, pause);
}

form.addEventListener("submit", (event) => {
  event.preventDefault();
  try {
    api.setKey(field.value);
  } catch (error) {
    say(/** @type {Error} */ (error).message, "bad");
    return;
  }
  field.value = "";
  cell.showCurl();
  refresh();
});

at("key-forget").addEventListener("click", () => {
  api.setKey(null);
  // Nothing that the key has shown stays.
  location.reload();
});

document.addEventListener("visibilitychange", () => {
  if (!document.hidden) refresh();
});

cell.begin(refresh);
refresh();
