// The node's API, with the key of who uses the page. The key stays in this tab.

const STORED = "isolet.key";

/** What a header can have. */
const KEY = /^[\x20-\x7e]+$/;

/** A refusal of the node, or of the network. */
export class Problem extends Error {
  /**
   * @param {number} status 0 if there was no answer
   * @param {string} message
   */
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

let key = stored();

function stored() {
  try {
    return sessionStorage.getItem(STORED);
  } catch {
    // The browser forbids it: the key is in memory only.
    return null;
  }
}

export const hasKey = () => key !== null;

/** @param {string | null} text */
export function setKey(text) {
  if (text !== null && !KEY.test(text)) {
    throw new Problem(0, "a key has letters, digits and signs of ASCII only");
  }
  key = text;
  try {
    if (text === null) sessionStorage.removeItem(STORED);
    else sessionStorage.setItem(STORED, text);
  } catch {
    // As above.
  }
}

/**
 * Sends a request. Returns the answer if the node has done what was asked.
 *
 * @param {string} method
 * @param {string} path
 * @param {{body?: object, accept?: string, keepalive?: boolean}} [options]
 */
async function send(method, path, { body, accept, keepalive } = {}) {
  const headers = new Headers();
  if (key !== null) headers.set("authorization", `Bearer ${key}`);
  if (accept) headers.set("accept", accept);
  if (body) headers.set("content-type", "application/json");
  let answer;
  try {
    answer = await fetch(path, {
      method,
      headers,
      keepalive,
      body: body && JSON.stringify(body),
      cache: "no-store",
      credentials: "omit",
      redirect: "error",
    });
  } catch {
    throw new Problem(0, "the node does not answer");
  }
  if (answer.ok) return answer;
  const problem = await answer.json().catch(() => ({}));
  const text = problem.detail ?? `the node answers with status ${answer.status}`;
  throw new Problem(answer.status, problem.hint ? `${text}; ${problem.hint}` : text);
}

const session = (/** @type {string} */ id) => `/v1/sessions/${encodeURIComponent(id)}`;

export const node = async () => (await send("GET", "/v1/node")).json();

export const sessions = async () => (await (await send("GET", "/v1/sessions")).json()).sessions;

export const create = async () => (await send("POST", "/v1/sessions", { body: {} })).json();

/** @param {string} id */
export const interrupt = (id) => send("POST", `${session(id)}/interrupt`);

/**
 * Ends a session, also while the page is left.
 *
 * @param {string} id
 */
export const end = (id) => send("DELETE", session(id), { keepalive: true });

/**
 * Runs code, and yields its events as they come.
 *
 * @param {string} id
 * @param {string} code
 */
export async function* run(id, code) {
  const body = { code, chart_pictures: true };
  const accept = "application/x-ndjson";
  const answer = await send("POST", `${session(id)}/runs`, { body, accept });
  try {
    yield* lines(answer.body);
  } catch (error) {
    throw error instanceof SyntaxError || error instanceof TypeError
      ? new Problem(0, "the connection broke off while the code ran")
      : error;
  }
}

/**
 * The objects of a body, one on each line.
 *
 * @param {ReadableStream<Uint8Array> | null} body
 */
async function* lines(body) {
  const reader = body?.getReader();
  const decoder = new TextDecoder();
  const parts = [];
  while (reader) {
    const { done, value } = await reader.read();
    if (done) return;
    const [first, ...rest] = decoder.decode(value, { stream: true }).split("\n");
    parts.push(first);
    for (const next of rest) {
      yield JSON.parse(parts.splice(0).join(""));
      parts.push(next);
    }
  }
}
