// Where Python's threads wait for each other. A thread is a stack of its own; one that waits for a
// lock or for another thread's end is suspended on a promise, which the thread that it waits for
// resolves.

import { primordials } from "ext:core/mod.js";
import { clearTimeout, reportUncaught, setTimeout } from "ext:isolet/globals.js";

const { Promise, PromisePrototypeThen, SafeMap } = primordials;

/** How a wait ended, as Python gets it. */
const TIMED_OUT = 0;
const WOKEN = 1;
const STALLED = 2;

export class Parking {
  #parked = new SafeMap();

  /**
   * Resolves when the wait of this number is ended, or after `timeout` milliseconds unless that is
   * negative.
   */
  park(number, timeout, thread) {
    return new Promise((resolve) => {
      /** @type {{ __proto__: null, resolve: Function, thread: number, timer?: number }} */
      const entry = { __proto__: null, resolve, thread, timer: undefined };
      this.#parked.set(number, entry);
      if (timeout >= 0) entry.timer = setTimeout(() => this.#end(number, TIMED_OUT), timeout);
    });
  }

  /** Ends a wait; false if it has ended before. */
  unpark(number) {
    return this.#end(number, WOKEN);
  }

  #end(number, how) {
    const entry = this.#parked.get(number);
    if (entry === undefined) return false;
    this.#parked.delete(number);
    if (entry.timer !== undefined) clearTimeout(entry.timer);
    entry.resolve(how);
    return true;
  }

  /** Ends the first wait of the main thread: the event loop has nothing left that could. */
  stalled() {
    for (const { 0: number, 1: entry } of this.#parked) {
      if (entry.thread === 0) {
        this.#end(number, STALLED);
        return;
      }
    }
  }
}

/** Calls a Python function of a stack of its own, as soon as the present one waits. */
export function spawn(callback) {
  PromisePrototypeThen(callback(), undefined, reportUncaught);
}
