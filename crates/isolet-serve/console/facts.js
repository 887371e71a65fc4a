// What the node is, and what it allows.

import { element } from "./output.js";

const UNITS = ["bytes", "KiB", "MiB", "GiB", "TiB"];

/** Limits in seconds. */
const TIMES = ["run_time", "host_time", "grace"];

/** @param {number} bytes */
export function size(bytes) {
  let unit = 0;
  while (bytes >= 1024 && unit < UNITS.length - 1) {
    bytes /= 1024;
    unit += 1;
  }
  return unit === 0 && bytes === 1 ? "1 byte" : `${Number(bytes.toPrecision(3))} ${UNITS[unit]}`;
}

/** @param {number} seconds */
export function time(seconds) {
  if (seconds < 1) return `${Math.round(seconds * 1000)} ms`;
  if (seconds < 60) return `${Number(seconds.toPrecision(2))} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min`;
  const hours = Math.floor(minutes / 60);
  if (hours < 48) return minutes % 60 === 0 ? `${hours} h` : `${hours} h ${minutes % 60} min`;
  return `${Math.floor(hours / 24)} days`;
}

/**
 * Shows pairs of a name and a text.
 *
 * @param {HTMLElement} place
 * @param {[string, string][]} pairs
 */
function describe(place, pairs) {
  const key = pairs.flat().join("\n");
  // Who reads or marks a text keeps it.
  if (place.dataset.shown === key) return;
  place.dataset.shown = key;
  place.replaceChildren(
    ...pairs.map(([name, text]) => {
      const pair = document.createElement("div");
      pair.append(element("dt", name), element("dd", text));
      return pair;
    }),
  );
}

/**
 * @param {string[]} names
 * @param {string} none
 */
const listed = (names, none) => (names.length > 0 ? names.join(", ") : none);

/**
 * @param {string} name
 * @param {number | null | undefined} value
 */
function limit(name, value) {
  if (value === null || value === undefined) return "none";
  if (TIMES.includes(name)) return time(value);
  return name.endsWith("_bytes") ? size(value) : value.toLocaleString("en");
}

/**
 * Shows the answer of `GET /v1/node`.
 *
 * @param {any} node
 */
export function showNode(node) {
  const at = (/** @type {string} */ id) => /** @type {HTMLElement} */ (document.getElementById(id));
  const { allowed, ceiling, tenant } = node;
  at("node-name").textContent = node.name;
  at("unknown").hidden = true;
  at("known").hidden = false;
  document.title = `${node.name}: isolet node`;
  describe(at("facts"), [
    ["Version", node.version],
    ["Isolation", node.isolation],
    ["Up for", time(Math.max(1, node.uptime))],
    ["Sessions", `${node.sessions} of ${node.max_sessions}`],
    ["Runs", `${node.running} under way, ${node.waiting} waiting`],
    ["Tenant", `${tenant.name}, up to ${tenant.max_sessions} sessions`],
  ]);
  const network = allowed.allow_public_net ? ["every public address"] : [];
  const mounts = allowed.mounts.map(
    (/** @type {{guest: string, mode: string}} */ { guest, mode }) => `${guest} (${mode})`,
  );
  const rest = [
    ["Network, denied", allowed.deny_net],
    ["Secrets", allowed.secrets],
  ].filter(([, names]) => names.length > 0);
  const more = [
    ...(ceiling.allow_public_net ? ["every public address"] : []),
    ...ceiling.allow_net,
    ...ceiling.packages.map((/** @type {string} */ name) =>
      name === "*" ? "every package" : `package ${name}`,
    ),
  ];
  describe(at("allowed"), [
    ["Network", listed([...network, ...allowed.allow_net], "none")],
    ["Files of the host", listed(mounts, "none")],
    ["Environment", listed(allowed.env, "none")],
    ["Packages", listed([...allowed.packages, ...allowed.allow_packages], "none besides isolet's")],
    ...rest.map(([name, names]) => /** @type {[string, string]} */ ([name, listed(names, "")])),
    ["On request", listed(more, "nothing more")],
  ]);
  const shown = JSON.stringify([allowed.limits, ceiling.limits]);
  const limits = at("limits");
  if (limits.dataset.shown === shown) return;
  limits.dataset.shown = shown;
  limits.replaceChildren(
    ...Object.keys(allowed.limits).map((name) => {
      const row = document.createElement("tr");
      const head = element("th", name);
      head.setAttribute("scope", "row");
      row.append(
        head,
        element("td", limit(name, allowed.limits[name]), "number"),
        element("td", limit(name, ceiling.limits[name]), "number"),
      );
      return row;
    }),
  );
}
