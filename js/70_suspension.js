// Lets the host interrupt Python: one that runs asks for it, by CPython's signal check. One that is suspended in a
// wait (`time.sleep`, `await`, a host call) runs no bytecode, so that the check never comes; the wait itself has to end.

import { primordials } from "ext:core/mod.js";
import { bytesOf } from "ext:isolet/55_calls.js";

const { Promise, PromisePrototypeThen, PromiseResolve, SafeSet, Symbol } = primordials;

/** What CPython's signal check is told. */
const SIGINT = 2;

/** Thrown into a wait to end it; never seen by guest code, which gets a KeyboardInterrupt. */
const INTERRUPT = Symbol("interrupt");

/** As `Promise.race` does it, which goes by what is on the prototypes. */
const firstOf = (one, other) =>
  new Promise((resolve, reject) => {
    PromisePrototypeThen(one, resolve, reject);
    PromisePrototypeThen(other, resolve, reject);
  });

export class Suspensions {
  #waits = new SafeSet();
  #interrupted;
  #held = false;
  #memory;
  #flag;

  /** `interrupted` takes and clears the host's request; true if there was one. */
  constructor(interrupted) {
    this.#interrupted = interrupted;
  }

  /** Says where the byte is that the host sets while there is an interrupt. */
  watch(memory, flag) {
    this.#memory = memory;
    this.#flag = flag;
  }

  /** While held, an interrupt waits for the wait that is about to begin. */
  hold(held) {
    this.#held = held;
  }

  /**
   * Replaces the import through which CPython looks for a signal, and the two through which it suspends on a
   * promise.
   */
  hook(Module, env) {
    const waits = this.#waits;
    // Called while the host's byte is set, which stays until the interrupt may be taken.
    env._Py_CheckEmscriptenSignals_Helper = () => {
      if (this.#held) return 0;
      bytesOf(this.#memory, this.#flag, 1)[0] = 0;
      return this.#interrupted() ? SIGINT : 0;
    };
    const wait = async (x, y) => {
      const entry = { __proto__: null, end: undefined };
      const ended = new Promise((_, reject) => {
        entry.end = () => reject(INTERRUPT);
      });
      waits.add(entry);
      this.#held = false;
      // One that was asked for before the wait began has had its wake-up call already.
      this.interrupt();
      try {
        return await firstOf(PromiseResolve(x ?? y), ended);
      } catch (error) {
        if (error?.pyodide_fatal_error) throw error;
        Module.syncify_error = error;
        return Module.error;
      } finally {
        waits.delete(entry);
      }
    };
    env.syncifyHandler = new WebAssembly.Suspending(wait);

    const handleError = env.JsvPromise_Syncify_handleError;
    env.JsvPromise_Syncify_handleError = () => {
      if (Module.syncify_error !== INTERRUPT) return handleError();
      delete Module.syncify_error;
      Module._PyErr_SetNone(Module.HEAPU32[Module._PyExc_KeyboardInterrupt >>> 2]);
    };
  }

  /** Ends the outermost wait, if Python is in one and the request was not served meanwhile. */
  interrupt() {
    if (this.#waits.size > 0 && this.#interrupted()) this.endOutermost();
  }

  /** Ends the outermost wait: for an interrupt that a callback got while Python waits. */
  endOutermost() {
    for (const entry of this.#waits) {
      entry.end();
      return;
    }
  }
}
