// Draws what a run has displayed: charts, tables and pictures. A host of MCP Apps has this page in
// a frame and sends it the result of the call. All of that is a guest's, so it becomes text and
// numbers, and never HTML.

"use strict";

const COLORS = [
  "#4c78a8",
  "#f58518",
  "#54a24b",
  "#e45756",
  "#72b7b2",
  "#b279a2",
  "#ff9da6",
  "#9d755d",
];
const [WIDTH, HEIGHT] = [640, 320];
const AREA = { left: 64, right: WIDTH - 12, top: 12, bottom: HEIGHT - 44 };
const MOST_ROWS = 1000;
const MOST_TICKS = 8;
const MOST_CHARTS = 16;
const MOST_LETTERS = 18;
const [LETTER, LINE] = [7, 14];
/** Between a label and what tells it from others that are the same. */
const APART = "\0";
const IMAGES = ["image/png", "image/jpeg", "image/webp", "image/gif"];

// The protocol.

let isReady = false;

function send(message) {
  parent.postMessage({ jsonrpc: "2.0", ...message }, "*");
}

function receive(event) {
  const message = event.data;
  if (event.source !== parent || typeof message !== "object" || message === null) return;
  const { id, method, params, result } = message;
  if (method === undefined) {
    if (id !== 1 || result === undefined) return;
    themed(result.hostContext);
    isReady = true;
    send({ method: "ui/notifications/initialized" });
    tellSize();
  } else if (method === "ui/notifications/tool-result") {
    show(params ?? {});
  } else if (method === "ui/notifications/host-context-changed") {
    themed(params);
  } else if (id !== undefined && (method === "ui/resource-teardown" || method === "ping")) {
    send({ id, result: {} });
  } else if (id !== undefined) {
    send({ id, error: { code: -32601, message: "there is no such method" } });
  }
}

function themed(context) {
  const theme = context?.theme;
  if (theme === "light" || theme === "dark") document.documentElement.style.colorScheme = theme;
}

function tellSize() {
  if (!isReady) return;
  const { offsetWidth: width, offsetHeight: height } = document.body;
  send({ method: "ui/notifications/size-changed", params: { width, height } });
}

// Elements.

function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

function drawn(name, attributes = {}, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

function hint(text) {
  return drawn("title", {}, text);
}

function textOf(value) {
  if (value === null || value === undefined) return "";
  if (typeof value === "number") return String(Number(value.toPrecision(6)));
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

function list(value) {
  return Array.isArray(value) ? value : [];
}

// What a result has.

function show(result) {
  const { entries, left_out: leftOut = 0 } = result._meta?.["isolet/displays"] ?? {};
  const images = list(result.content).filter((block) => block?.type === "image");
  const figures = list(entries).flatMap((entry) => {
    try {
      return [figureOf(entry, images)];
    } catch {
      return entry?.image === undefined ? [] : [pictureOf(images[entry.image])];
    }
  });
  const note = `${leftOut} more, which are too large to be shown here`;
  if (leftOut > 0) figures.push(element("p", { class: "note" }, note));
  document.body.replaceChildren(...figures.filter((figure) => figure !== undefined));
  tellSize();
}

function figureOf({ chart, table, image }, images) {
  if (table !== undefined) return tableOf(table);
  const figure = chart === undefined ? undefined : chartOf(chart, 0);
  return figure ?? pictureOf(images[image]);
}

function pictureOf(block) {
  const { mimeType, data } = block ?? {};
  if (!IMAGES.includes(mimeType) || typeof data !== "string") return undefined;
  return element("figure", {}, element("img", { src: `data:${mimeType};base64,${data}`, alt: "" }));
}

function tableOf(columns) {
  const names = Object.keys(columns);
  const count = Math.max(0, ...names.map((name) => list(columns[name]).length));
  const rows = Array.from({ length: count }, (_, at) => at);
  const body = element("tbody");
  const fill = () => {
    body.replaceChildren(...rows.slice(0, MOST_ROWS).map((row) =>
      element("tr", {}, ...names.map((name) => element("td", {}, textOf(columns[name][row]))))
    ));
  };
  let sorted;
  const heads = names.map((name) => {
    const head = element("th", { scope: "col" }, name);
    head.addEventListener("click", () => {
      const factor = sorted === name ? -1 : 1;
      sorted = factor === 1 ? name : undefined;
      rows.sort((one, other) => factor * compare(columns[name][one], columns[name][other]));
      fill();
    });
    return head;
  });
  fill();
  const head = element("thead", {}, element("tr", {}, ...heads));
  const table = element("table", {}, head, body);
  const figure = element("figure", {}, element("div", { class: "table" }, table));
  const note = `the first ${MOST_ROWS} of ${count} rows in this order`;
  if (count > MOST_ROWS) figure.append(element("p", { class: "note" }, note));
  return figure;
}

function compare(one, other) {
  if (typeof one === "number" && typeof other === "number") return one - other;
  return textOf(one).localeCompare(textOf(other));
}

// Charts, as `docs/concepts/displays.md` describes them. Returns `undefined` for what cannot be
// drawn.

function chartOf(chart, depth) {
  const draw = KINDS[chart?.type];
  const title = textOf(chart?.title);
  const caption = title === "" ? [] : [element("figcaption", {}, title)];
  if (chart?.type === "superchart" && depth === 0) {
    const inner = list(chart.elements).slice(0, MOST_CHARTS).map((each) => chartOf(each, 1));
    return inner.some((each) => each === undefined)
      ? undefined
      : element("figure", {}, ...caption, ...inner);
  }
  if (draw === undefined) return undefined;
  const elements = list(chart.elements);
  const nameOf = ({ label, group }) => textOf(draw === bars ? group : label);
  const labels = [...new Set(elements.map(nameOf))];
  const colors = new Map(labels.map((label, at) => [label, COLORS[at % COLORS.length]]));
  const hidden = new Set();
  const holder = element("div");
  const redraw = () => {
    const shown = (each) => !hidden.has(nameOf(each));
    const svg = drawn("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img" });
    draw(svg, chart, elements.filter(shown), (label) => colors.get(label));
    holder.replaceChildren(svg);
  };
  redraw();
  const figure = element("figure", {}, ...caption, holder);
  if (labels.length > 1 && draw !== boxes) figure.append(legend(labels, hidden, redraw));
  return figure;
}

function legend(labels, hidden, redraw) {
  const buttons = labels.map((label, at) => {
    const button = element("button", { "aria-pressed": "true" }, label || "(without a name)");
    button.style.setProperty("--color", COLORS[at % COLORS.length]);
    button.addEventListener("click", () => {
      const isHidden = !hidden.delete(label);
      if (isHidden) hidden.add(label);
      button.setAttribute("aria-pressed", String(!isHidden));
      redraw();
    });
    return button;
  });
  return element("div", { class: "legend" }, ...buttons);
}

/** Returns where values are on an axis, and its ticks. */
function scaleOf(values, kind, from, to, isUpright = false) {
  const isDate = kind === "datetime";
  const number = isDate ? (value) => Date.parse(value) : Number;
  const isName = (value) => typeof value !== "number" && Number.isNaN(number(value));
  if (kind === "categorical" || values.some(isName)) {
    const names = [...new Set(values.map(textOf))];
    const step = (to - from) / Math.max(1, names.length);
    const places = new Map(names.map((name, at) => [name, from + (at + 0.5) * step]));
    const place = (value) => places.get(textOf(value));
    const labels = names.map((name) => name.split(APART)[0]);
    const longest = labels.reduce((most, label) => Math.max(most, label.length), 0);
    const every = Math.ceil((isUpright ? LINE : Math.min(longest, MOST_LETTERS) * LETTER) / step);
    const ticks = names.map((name, at) => [place(name), labels[at]]);
    return { place, step, ticks: ticks.filter((_, at) => at % every === 0) };
  }
  const isLog = kind === "log" && values.every((value) => number(value) > 0);
  const scaled = (value) => isLog ? Math.log10(number(value)) : number(value);
  const all = values.filter((value) => value !== null).map(scaled).filter(Number.isFinite);
  let least = all.reduce((one, other) => Math.min(one, other), Infinity);
  let most = all.reduce((one, other) => Math.max(one, other), -Infinity);
  if (all.length === 0) [least, most] = [0, 1];
  if (least === most) [least, most] = [least - 1, most + 1];
  const place = (value) => from + (scaled(value) - least) / (most - least) * (to - from);
  const ticks = roundSteps(least, most).map((at) => {
    const value = isLog ? 10 ** at : at;
    const date = () => new Date(at).toISOString().slice(0, most - least < 3e8 ? 16 : 10);
    const label = isDate ? date() : textOf(value);
    return [from + (at - least) / (most - least) * (to - from), label];
  });
  return { place, step: (to - from) / Math.max(1, new Set(all).size), ticks };
}

function roundSteps(least, most) {
  const rough = (most - least) / MOST_TICKS;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((each) => each * power).find((each) => each >= rough);
  const first = Math.ceil(least / step);
  const length = Math.floor(most / step) - first + 1;
  return Array.from({ length }, (_, at) => (first + at) * step);
}

function axes(svg, chart, x, y) {
  const { left, right, top, bottom } = AREA;
  svg.append(drawn("path", { class: "axis", d: `M${left} ${top}V${bottom}H${right}` }));
  for (const [at, label] of x.ticks) {
    const place = { x: at, y: bottom + 16, "text-anchor": "middle" };
    svg.append(drawn("text", place, label.slice(0, MOST_LETTERS)));
  }
  for (const [at, label] of y.ticks) {
    svg.append(drawn("text", { x: left - 6, y: at + 4, "text-anchor": "end" }, label.slice(0, 10)));
  }
  const xLabel = { x: (left + right) / 2, y: HEIGHT - 6, "text-anchor": "middle" };
  svg.append(drawn("text", xLabel, textOf(chart.x_label)));
  const transform = `translate(12 ${(top + bottom) / 2}) rotate(-90)`;
  const yLabel = { transform, "text-anchor": "middle" };
  svg.append(drawn("text", yLabel, textOf(chart.y_label)));
}

function points(svg, chart, elements, color) {
  const all = elements.flatMap((each) => list(each.points));
  const x = scaleOf(all.map(([at]) => at), chart.x_scale, AREA.left, AREA.right);
  const y = scaleOf(all.map(([, at]) => at), chart.y_scale, AREA.bottom, AREA.top);
  axes(svg, chart, x, y);
  for (const { label, points: its } of elements) {
    const places = list(its).map((pair) => {
      const [at, value] = pair;
      return [x.place(at), value === null ? NaN : y.place(value), pair];
    });
    if (chart.type === "line") {
      let isBroken = true;
      const path = places.map(([cx, cy]) => {
        if (!Number.isFinite(cx + cy)) {
          isBroken = true;
          return "";
        }
        const command = isBroken ? "M" : "L";
        isBroken = false;
        return `${command}${cx.toFixed(1)} ${cy.toFixed(1)}`;
      });
      const stroke = color(textOf(label));
      svg.append(drawn("path", { class: "series", d: path.join(""), stroke }));
    }
    // Of many points of a line, only some can be pointed at.
    const every = chart.type === "line" ? Math.ceil(places.length / 500) : 1;
    const seen = places.filter(([cx, cy], at) => at % every === 0 && Number.isFinite(cx + cy));
    for (const [cx, cy, pair] of seen) {
      const r = chart.type === "line" ? 5 : 3;
      const opacity = chart.type === "line" ? 0 : 0.8;
      const values = pair.slice(0, 2).map(textOf).join(", ");
      const said = [textOf(label), values].filter((text) => text !== "").join(": ");
      const dot = { cx: cx.toFixed(1), cy: cy.toFixed(1), r, opacity, fill: color(textOf(label)) };
      svg.append(drawn("circle", dot, hint(said)));
    }
  }
}

function bars(svg, chart, elements, color) {
  const isAcross = chart.orientation === "horizontal";
  const groups = new Map();
  for (const { group } of elements) {
    if (!groups.has(textOf(group))) groups.set(textOf(group), groups.size);
  }
  const [from, to] = isAcross ? [AREA.top, AREA.bottom] : [AREA.left, AREA.right];
  const [zero, end] = isAcross ? [AREA.left, AREA.right] : [AREA.bottom, AREA.top];
  // A label may be there twice.
  const counts = new Map();
  const keys = elements.map(({ label, group }) => {
    const pair = JSON.stringify([label, group]);
    const count = counts.get(pair) ?? 0;
    counts.set(pair, count + 1);
    return `${textOf(label)}${APART}${count}`;
  });
  const names = scaleOf(keys, "categorical", from, to, isAcross);
  const values = scaleOf([0, ...elements.map(({ value }) => value)], "linear", zero, end);
  axes(svg, chart, isAcross ? values : names, isAcross ? names : values);
  const width = names.step * 0.8 / Math.max(1, groups.size);
  for (const [at, { label, group, value }] of elements.entries()) {
    const side = names.place(keys[at]) - names.step * 0.4 + groups.get(textOf(group)) * width;
    const [low, high] = [values.place(0), values.place(value)].sort((one, other) => one - other);
    const along = { x: low, width: high - low, y: side, height: width };
    const up = { x: side, width, y: low, height: high - low };
    const said = [textOf(label), textOf(group)].filter((text) => text !== "").join(", ");
    const place = { ...(isAcross ? along : up), fill: color(textOf(group)) };
    svg.append(drawn("rect", place, hint(`${said}: ${textOf(value)}`)));
  }
}

function pie(svg, _chart, elements, color) {
  const [cx, cy, r] = [WIDTH / 2, HEIGHT / 2, HEIGHT / 2 - 12];
  const on = (turn) => [cx + r * Math.cos(turn), cy + r * Math.sin(turn)];
  const place = (turn) => on(turn).map((at) => at.toFixed(1)).join(" ");
  const total = elements.reduce((sum, { angle }) => sum + Number(angle), 0);
  let at = -Math.PI / 2;
  for (const { label, angle } of elements) {
    const part = Number(angle) / total;
    if (!Number.isFinite(part)) continue;
    const next = at + part * 2 * Math.PI;
    const isLarge = part > 0.5 ? 1 : 0;
    const d = `M${cx} ${cy}L${place(at)}A${r} ${r} 0 ${isLarge} 1 ${place(next)}Z`;
    const fill = color(textOf(label));
    const said = hint(`${textOf(label)}: ${(part * 100).toFixed(1)} %`);
    const whole = drawn("circle", { cx, cy, r, fill }, said);
    svg.append(part > 0.9999 ? whole : drawn("path", { d, fill }, said));
    at = next;
  }
}

function boxes(svg, chart, elements, color) {
  const values = elements.flatMap((each) => [each.min, each.max, ...list(each.outliers)]);
  const x = scaleOf(elements.map(({ label }) => label), "categorical", AREA.left, AREA.right);
  const y = scaleOf(values, "linear", AREA.bottom, AREA.top);
  axes(svg, chart, x, y);
  for (const each of elements) {
    const { label, min, first_quartile: low, median, third_quartile: high, max, outliers } = each;
    const [at, half] = [x.place(label), x.step * 0.3];
    const fill = color(textOf(label));
    const said = `${textOf(label)}: ${[min, low, median, high, max].map(textOf).join(", ")}`;
    const whisker = `M${at} ${y.place(min)}V${y.place(low)}M${at} ${y.place(high)}V${y.place(max)}`;
    const height = y.place(low) - y.place(high);
    const box = { x: at - half, width: 2 * half, y: y.place(high), height };
    const middle = `M${at - half} ${y.place(median)}h${2 * half}`;
    svg.append(
      drawn("path", { class: "series", d: whisker, stroke: fill }),
      drawn("rect", { ...box, fill, "fill-opacity": 0.5 }, hint(said)),
      drawn("path", { class: "series", d: middle, stroke: fill }),
      ...list(outliers).map((value) =>
        drawn("circle", { cx: at, cy: y.place(value), r: 3, fill }, hint(textOf(value)))
      ),
    );
  }
}

const KINDS = { line: points, scatter: points, bar: bars, pie, box_and_whisker: boxes };

addEventListener("message", receive);
new ResizeObserver(tellSize).observe(document.body);
send({
  id: 1,
  method: "ui/initialize",
  params: {
    appInfo: { name: "isolet", version: "1" },
    appCapabilities: {},
    protocolVersion: "2026-01-26",
  },
});
