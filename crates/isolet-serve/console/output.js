// What a run has written and shown. All of it is the guest's: text is put in as text, pictures as
// pictures, and HTML into a frame without scripts, of another origin, that loads nothing.

/** The formats of pictures, the best first. As pictures, none of them has scripts. */
const PICTURES = ["image/png", "image/jpeg", "image/webp", "image/gif", "image/svg+xml"];

/** Texts, the best first, after pictures and HTML. */
const TEXTS = ["text/plain", "text/markdown", "text/latex", "application/json"];

const CHART = "application/vnd.isolet.chart.v1+json";

/** The most characters that are shown of a run, and displays. */
const MAX_CHARACTERS = 2_000_000;
const MAX_DISPLAYS = 100;
const MAX_ALT = 200;

/** Elements by which a page reaches other hosts beside its policy, as it connects or asks for names
    before anything is loaded. */
const REACHING =
  /<(?=\/?(?:link|meta|base|a|area|frame|iframe|frameset|fencedframe|portal)(?![a-z0-9-]))/gi;

/** Pages are made for paper of white. */
const FRAME_HEAD = `<!doctype html><meta name="color-scheme" content="light">
<meta http-equiv="x-dns-prefetch-control" content="off">
<style>body { margin: 0.5em; background: white; font: 15px/1.4 system-ui, sans-serif; }
table { border-collapse: collapse; } th, td { padding: 0.2em 0.7em; text-align: right; }
thead { border-bottom: 1px solid; } h1, h2, h3 { line-height: 1.2; }</style>`;

/** Colours of a terminal, which are left out. */
// oxlint-disable-next-line no-control-regex
const COLOURS = /\x1b\[[0-9;:]*m/g;

/** Characters that would not be seen, or change how others are seen. */
// oxlint-disable-next-line no-control-regex
const UNSEEN = /[\0-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]/g;

/**
 * Makes a text such that all of it is seen.
 *
 * @param {string} text
 */
export function visible(text) {
  return text.replace(COLOURS, "").replace(UNSEEN, (character) => {
    const code = character.charCodeAt(0);
    if (code < 0x20) return String.fromCharCode(0x2400 + code);
    return code === 0x7f ? "\u2421" : `\\u{${code.toString(16)}}`;
  });
}

/**
 * Makes an element with a text.
 *
 * @param {string} name
 * @param {string} text
 * @param {string} [kind] its class
 */
export function element(name, text, kind) {
  const made = document.createElement(name);
  made.textContent = text;
  if (kind) made.className = kind;
  return made;
}

/** Output of one kind, as a terminal shows it: a carriage return goes back to the line's start. */
class Stream {
  /** @param {string} kind */
  constructor(kind) {
    this.kind = kind;
    this.element = element("pre", "", kind);
    this.line = "";
    this.last = document.createTextNode("");
    this.element.append(this.last);
  }

  /** @param {string} text */
  add(text) {
    const whole = (this.line + text).replaceAll("\r\n", "\n");
    const end = whole.lastIndexOf("\n") + 1;
    if (end > 0) {
      const lines = whole.slice(0, end - 1).split("\n").map(overwritten);
      this.last.before(`${lines.join("\n")}\n`);
    }
    this.line = whole.slice(end);
    this.last.data = overwritten(this.line);
  }
}

/** @param {string} line */
function overwritten(line) {
  const written = line.endsWith("\r") ? line.slice(0, -1) : line;
  return visible(written.slice(written.lastIndexOf("\r") + 1));
}

/** The output of the cell. */
export class Output {
  /** @param {HTMLElement} place */
  constructor(place) {
    this.place = place;
    this.stream = /** @type {Stream | null} */ (null);
    this.characters = 0;
    this.displays = 0;
  }

  clear() {
    this.place.replaceChildren();
    this.stream = null;
    this.characters = 0;
    this.displays = 0;
  }

  /** @param {Node} shown */
  #show(shown) {
    this.stream = null;
    this.place.append(shown);
  }

  /**
   * Adds a text that does not change any more.
   *
   * @param {string} text
   * @param {string} kind
   */
  note(text, kind) {
    if (text) this.#show(element("pre", visible(text), kind));
  }

  /**
   * Adds output.
   *
   * @param {string} kind `stdout` or `stderr`
   * @param {string} text
   */
  write(kind, text) {
    const room = MAX_CHARACTERS - this.characters;
    this.characters += text.length;
    if (room <= 0) return;
    let stream = this.stream;
    if (stream?.kind !== kind) {
      stream = new Stream(kind);
      this.#show(stream.element);
      this.stream = stream;
    }
    stream.add(text.slice(0, room));
    if (text.length > room) this.note("This page shows no more of the output.", "note");
  }

  /**
   * Adds what the guest has displayed, in the best of its formats.
   *
   * @param {Record<string, any>} formats
   */
  display(formats) {
    this.displays += 1;
    if (this.displays > MAX_DISPLAYS) {
      if (this.displays > MAX_DISPLAYS + 1) return;
      this.note("This page shows no more displays.", "note");
      return;
    }
    const picture = PICTURES.find((format) => format in formats);
    const source = picture && address(picture, formats[picture]);
    if (source) {
      const image = document.createElement("img");
      image.alt = alternative(formats);
      image.src = source;
      this.#show(image);
    } else if (typeof formats["text/html"] === "string") {
      this.#show(framed(formats["text/html"]));
    } else {
      const format = TEXTS.find((one) => one in formats) ?? Object.keys(formats)[0];
      const data = formats[format];
      this.note(typeof data === "string" ? data : JSON.stringify(data, null, 2), "value");
    }
  }
}

/**
 * Returns the address of a picture that consists of the picture; none if it is no picture.
 *
 * @param {string} format
 * @param {any} data
 */
function address(format, data) {
  if (typeof data === "string") return `data:${format},${encodeURIComponent(data)}`;
  const bytes = data?.$bytes;
  return typeof bytes === "string" ? `data:${format};base64,${bytes}` : undefined;
}

/**
 * Returns what a picture shows, in words.
 *
 * @param {Record<string, any>} formats
 */
function alternative(formats) {
  const chart = formats[CHART];
  let words = formats["text/plain"];
  try {
    const { type, title } = typeof chart === "string" ? JSON.parse(chart) : (chart ?? {});
    if (type) words = title ? `Chart (${type}): ${title}` : `Chart (${type})`;
  } catch {
    // Its picture is there.
  }
  return typeof words === "string" ? visible(words).slice(0, MAX_ALT) : "Picture";
}

/**
 * Returns a frame with HTML of the guest. The outer frame's page has a policy of its own, which the
 * inner frame inherits: no scripts, and nothing from outside. The inner frame is of no origin.
 *
 * @param {string} html
 */
function framed(html) {
  const outer = document.createElement("iframe");
  outer.setAttribute("sandbox", "allow-same-origin");
  outer.title = "HTML of the code";
  outer.className = "html";
  // The frame's content cannot be measured: a table's rows say how high it is.
  const rows = (html.match(/<tr/gi) ?? []).length;
  outer.style.height = rows > 0 ? `${Math.min(4 + 1.8 * rows, 30)}rem` : "20rem";
  outer.addEventListener("load", () => {
    const page = outer.contentDocument;
    if (!page) return;
    const inner = page.createElement("iframe");
    inner.setAttribute("sandbox", "");
    inner.title = outer.title;
    inner.style.cssText = "position: fixed; inset: 0; width: 100%; height: 100%; border: 0";
    inner.srcdoc = FRAME_HEAD + html.replace(REACHING, "<x-");
    page.body.replaceChildren(inner);
  });
  outer.src = "/console/frame.html";
  return outer;
}
