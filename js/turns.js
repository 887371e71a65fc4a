// What a deterministic session does next: callbacks, timers and answers come one at a time, each
// after everything that the one before has led to. The host decides about their order and the time.

import { primordials } from "ext:core/mod.js";
import {
  op_isolet_order,
  op_isolet_order_expect,
  op_isolet_order_resume,
  op_isolet_order_state,
  op_isolet_tool_wait,
} from "ext:core/ops";

const {
  ArrayPrototypePush,
  ArrayPrototypeShift,
  ArrayPrototypeSplice,
  Error,
  Promise,
  SafeMap,
  SymbolKeyFor,
  SymbolToStringTag,
  TypeError,
} = primordials;

/** What the host lets happen, as it says it. */
const TIMER = 1;
const ANSWER = 2;

/** What the host is told instead of when a timer is due. */
const NO_TIMER = -1;
const RAN = -2;

class Turns {
  #ready = [];
  /** By the times that they are due at, those with the same one as they were made. */
  #timers = [];
  #answers = new SafeMap();

  soon(callback) {
    ArrayPrototypePush(this.#ready, callback);
  }

  at(due, callback) {
    const timer = { __proto__: null, due, callback };
    const timers = this.#timers;
    let [low, high] = [0, timers.length];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (timers[middle].due <= due) low = middle + 1;
      else high = middle;
    }
    ArrayPrototypeSplice(timers, low, 0, timer);
    return timer;
  }

  cancel(timer) {
    const timers = this.#timers;
    for (let i = 0; i < timers.length; i++) {
      if (timers[i] === timer) {
        ArrayPrototypeSplice(timers, i, 1);
        return;
      }
    }
  }

  /** Resolves to the length of the answer to a call. */
  answered(call) {
    return new Promise((resolve, reject) => {
      op_isolet_order_expect(call);
      this.#answers.set(call, { __proto__: null, resolve, reject });
    });
  }

  forget(call) {
    const waiting = this.#answers.get(call);
    if (waiting === undefined) return;
    this.#answers.delete(call);
    waiting.reject(new Error("there is no answer to a cancelled call"));
  }

  isEmpty() {
    return this.#ready.length === 0 && this.#timers.length === 0 && this.#answers.size === 0;
  }

  turn(what, call, length) {
    if (what === TIMER) {
      ArrayPrototypeShift(this.#timers)?.callback();
    } else if (what === ANSWER) {
      const waiting = this.#answers.get(call);
      this.#answers.delete(call);
      waiting?.resolve(length);
    } else if (this.#ready.length > 0) {
      ArrayPrototypeShift(this.#ready)();
      return RAN;
    }
    return this.#timers[0]?.due ?? NO_TIMER;
  }
}

/**
 * What a deterministic session has in place of `WeakRef`: when V8 collects garbage does not follow
 * from the seed, so an object that was referred to stays.
 */
export const StrongRef = class WeakRef {
  #target;
  constructor(target) {
    const type = typeof target;
    const isObject = (type === "object" && target !== null) || type === "function";
    if (!isObject && (type !== "symbol" || SymbolKeyFor(target) !== undefined)) {
      throw new TypeError("invalid value used in WeakRef");
    }
    this.#target = target;
  }
  deref() {
    return this.#target;
  }
  get [SymbolToStringTag]() {
    return "WeakRef";
  }
};

/** The turns of a deterministic session; null in others. @type {Turns | null} */
export let turns = null;

/**
 * Makes the session deterministic, with what its clocks go by. Returns whether its entropy is
 * another one from here on, which it is not in one that goes on with the same seed.
 */
export function order(high, low, started, clocks) {
  turns ??= new Turns();
  return op_isolet_order(high, low, started, clocks);
}

/** What a deterministic session goes on from, as a text; empty for others. */
let saved = "";

/** Says what a deterministic session goes on from, and so what `resumeOrder` goes back to. */
export function savedOrder() {
  saved = op_isolet_order_state();
  return saved;
}

/** Begins to be a deterministic session that was saved; false if it was none. */
export function restoreOrder(state) {
  saved = typeof state === "string" ? state : "";
  if (saved === "") return false;
  op_isolet_order_resume(saved);
  turns ??= new Turns();
  return true;
}

/** Takes back what saving and restoring has taken of the time and the entropy of the session. */
export function resumeOrder() {
  if (saved !== "") op_isolet_order_resume(saved);
}

/** Resolves to the length of the answer to a call. */
export function answered(call) {
  return turns === null ? op_isolet_tool_wait(call) : turns.answered(call);
}
