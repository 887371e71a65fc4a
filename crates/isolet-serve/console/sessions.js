// The sessions of the key, each in a row that stays while the session lives.

import { end } from "./api.js";
import { size, time } from "./facts.js";
import { element } from "./output.js";

/** @type {Map<string, HTMLTableRowElement>} */
const rows = new Map();

const at = (/** @type {string} */ id) => /** @type {HTMLElement} */ (document.getElementById(id));

/**
 * The end of an id is its own; the rest names the node and its start.
 *
 * @param {string} id
 */
export const short = (id) => `…${id.slice(-8)}`;

/**
 * @param {string} id
 * @param {(id: string) => void} use
 * @param {(error: Error) => void} failed
 */
function newRow(id, use, failed) {
  const row = document.createElement("tr");
  const name = element("th", short(id));
  name.setAttribute("scope", "row");
  name.title = id;
  const kinds = ["", "number", "number more", "number more", "number more", "number more"];
  const cells = kinds.map((kind) => element("td", "", kind));
  const actions = element("td", "", "row-actions");
  const used = element("button", "Use");
  used.setAttribute("aria-label", `Use the session ${short(id)} for the code`);
  used.addEventListener("click", () => use(id));
  const ended = element("button", "End");
  ended.setAttribute("aria-label", `End the session ${short(id)}`);
  ended.addEventListener("click", async () => {
    if (!confirm(`End the session ${id}? Its variables and files are lost.`)) return;
    try {
      await end(id);
      remove(id);
    } catch (error) {
      failed(/** @type {Error} */ (error));
    }
  });
  actions.append(used, " ", ended);
  row.append(name, ...cells, actions);
  return row;
}

/** @param {string} id */
function remove(id) {
  const row = rows.get(id);
  const hadFocus = row?.contains(document.activeElement);
  row?.remove();
  rows.delete(id);
  if (hadFocus) at("sessions-title").focus();
  count();
}

function count() {
  at("session-count").textContent = rows.size > 0 ? `(${rows.size})` : "";
  at("no-sessions").hidden = rows.size > 0;
  at("sessions-box").hidden = rows.size === 0;
}

/**
 * Shows the answer of `GET /v1/sessions`.
 *
 * @param {any[]} sessions
 * @param {(id: string) => void} use
 * @param {(error: Error) => void} failed
 */
export function showSessions(sessions, use, failed) {
  const now = Date.now() / 1000;
  for (const session of sessions) {
    let row = rows.get(session.id);
    if (!row) {
      row = newRow(session.id, use, failed);
      rows.set(session.id, row);
      at("sessions").append(row);
    }
    const memory = (/** @type {number} */ bytes) => (bytes > 0 ? size(bytes) : "–");
    const texts = [
      session.durable ? `${session.state}, durable` : session.state,
      memory(session.peak_memory_bytes),
      memory(session.max_memory_bytes),
      time(session.run_time),
      time(Math.max(1, now - session.created_at)),
      time(session.ttl),
    ];
    texts.forEach((text, nth) => {
      const cell = /** @type {HTMLElement} */ (row.children[nth + 1]);
      if (cell.textContent !== text) cell.textContent = text;
    });
    row.dataset.state = session.state;
    /** @type {HTMLButtonElement} */ (row.querySelector("button")).disabled =
      session.state === "paused" || session.state === "ended" || session.durable === true;
  }
  const listed = new Set(sessions.map((session) => session.id));
  for (const id of [...rows.keys()]) if (!listed.has(id)) remove(id);
  count();
}
