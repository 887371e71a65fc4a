// Lets the host interrupt Python: one that runs asks for it, by CPython's signal check. One that is
// suspended in a wait (`time.sleep`, `await`, a host call) runs no bytecode, so that the check
// never comes; the wait itself has to end.

import { primordials } from "ext:core/mod.js";
import { bytesOf } from "ext:isolet/calls.js";
import { clearTimeout, setTimeout } from "ext:isolet/globals.js";
import {
  op_isolet_alarm_set,
  op_isolet_alarm_take,
  op_isolet_order_steps,
} from "ext:core/ops";

const {
  ArrayPrototypeMap,
  ArrayPrototypePush,
  ArrayPrototypeShift,
  Promise,
  PromisePrototypeThen,
  PromiseResolve,
  SafeSet,
  Symbol,
} = primordials;

/** What CPython's signal check is told. */
const SIGINT = 2;
const SIGALRM = 14;

/** Which word of a method of CPython's is its function. */
const METHOD_FUNCTION = 2;

/** Thrown into a wait to end it; never seen by guest code, which gets a KeyboardInterrupt. */
const INTERRUPT = Symbol("interrupt");

/** As `Promise.race` does it, which goes by what is on the prototypes. */
const firstOf = (one, other) =>
  new Promise((resolve, reject) => {
    PromisePrototypeThen(one, resolve, reject);
    PromisePrototypeThen(other, resolve, reject);
  });

/**
 * Python's threads are stacks that take turns. An interrupt is the main thread's, and ends besides
 * it what the others wait for, so that a main thread which waits for them comes to its end; but for
 * what another thread will end.
 */
export class Suspensions {
  #waits = new SafeSet();
  #interrupted;
  #held = false;
  #isAligning = false;
  #hasLooked = false;
  #memory;
  #flag;
  /** Where Pyodide's function is that gives a future the result of a promise. */
  #setResult = 0;
  /** The number of the thread that runs; the main one is 0. */
  #thread = 0;
  /** Whether the wait that is about to begin is for another thread. */
  #forThread = false;
  /** The last thread there was, and the last when there was an interrupt in this run. */
  #lastThread = 0;
  #lastInterrupted = 0;
  /**
   * Whether there is an interrupt that the main thread has yet to get, and whether a wait of its
   * was ended for that.
   */
  #isPending = false;
  #isEnding = false;
  /** The other threads that have got it: each once, while it computes or by the end of its wait. */
  #hit = new SafeSet();
  /** What ended the waits of the stacks that are about to go on, in their order. */
  #errors = [];
  /** The timer of the alarm, by which it ends a wait; 0 if there is none. */
  #alarm = 0;
  /** Whether the timer has come to its end, and nothing has taken the alarm. */
  #hasRung = false;
  /** Whether the steps of the interpreter are counted. */
  #counts = false;
  /** Whether a wait was ended for it: 1, or 2 if it was taken elsewhere before Python went on. */
  #alarmed = 0;

  /** `interrupted` takes and clears the host's request; true if there was one. */
  constructor(interrupted) {
    this.#interrupted = interrupted;
  }

  /** Says where the byte is that the host sets while there is an interrupt. */
  watch(memory, flag) {
    this.#memory = memory;
    this.#flag = flag;
  }

  /** Says where the function is that wakes what awaits a promise. */
  spare(setResult) {
    this.#setResult = setResult;
  }

  /** Has all steps of the interpreter counted, in a deterministic session. */
  count() {
    this.#counts = true;
    bytesOf(this.#memory, this.#flag, 1)[0] = 1;
  }

  /**
   * Whether the interpreter has looked for a signal since this was first asked. Until then its
   * steps are not counted, so what follows begins with as many steps left until the next look.
   */
  aligned() {
    if (!this.#isAligning) {
      this.#isAligning = true;
      this.#hasLooked = false;
      this.count();
      return false;
    }
    this.#isAligning = !this.#hasLooked;
    return this.#hasLooked;
  }

  /** Whether no stack waits for anything. */
  isEmpty() {
    return this.#waits.size === 0;
  }

  /** Starts a run, to which nothing applies that there was in another. */
  begin() {
    this.#lastInterrupted = 0;
    this.#isPending = false;
  }

  /** From here on an interrupt waits for the wait that is about to begin. */
  hold(thread, forThread) {
    this.#held = true;
    this.#thread = thread;
    this.#forThread = forThread;
  }

  /** An interrupt may come again, in the thread of this number. */
  release(thread) {
    this.#held = false;
    this.#thread = thread;
    if (this.#alarm !== 0 && thread === 0) bytesOf(this.#memory, this.#flag, 1)[0] = 1;
    if (thread > this.#lastThread) this.#lastThread = thread;
  }

  /**
   * Sets the alarm, which is due in so many milliseconds; 0 is none. The host sees to it that
   * Python which runs looks for it; a wait of the main thread is ended here.
   */
  setAlarm(delay) {
    this.#stopAlarm();
    this.#alarmed = 0;
    this.#alarm = delay > 0 ? setTimeout(() => this.#endForAlarm(), delay) : 0;
    op_isolet_alarm_set(delay);
  }

  /**
   * Whether the main thread's wait was ended for the alarm: 1 if that has arrived, 2 if the wait
   * only has to go on.
   */
  takeAlarm() {
    const alarmed = this.#alarmed;
    this.#alarmed = 0;
    return alarmed;
  }

  #endForAlarm() {
    this.#hasRung = true;
    let last;
    for (const entry of this.#waits) {
      if (entry.thread === 0) last = entry;
    }
    // Without a wait the thread is about to go on, and looks for it then.
    if (last === undefined) return;
    last.isAlarmed = true;
    last.end();
  }

  /**
   * Replaces the import through which CPython looks for a signal, and the two through which it
   * suspends on a promise.
   */
  hook(Module, env) {
    this.#hookAwait(Module, env);
    const waits = this.#waits;
    // Called while the host's byte is set, which stays until the interrupt may be taken. In a
    // deterministic session it is always set, and each call is time that has passed.
    env._Py_CheckEmscriptenSignals_Helper = () => {
      if (this.#isAligning) {
        this.#hasLooked = true;
        return 0;
      }
      const hasAlarm = this.#counts && op_isolet_order_steps();
      if (this.#held) return 0;
      if (!this.#isPending && !this.#interrupted()) {
        const isSet = this.#alarm !== 0 && (hasAlarm || !this.#counts);
        if (this.#thread === 0 && isSet && op_isolet_alarm_take(false)) {
          this.#stopAlarm();
          return SIGALRM;
        }
        this.#unwatch();
        return 0;
      }
      if (this.#thread === 0) {
        if (this.#isPending && this.#isEnding) return 0;
        this.#endOthers();
        this.#delivered();
        return SIGINT;
      }
      if (!this.#isPending) this.#take();
      if (this.#hit.has(this.#thread)) return 0;
      this.#hit.add(this.#thread);
      return SIGINT;
    };
    const wait = async (x, y) => {
      const entry = {
        __proto__: null,
        end: /** @type {(() => void) | undefined} */ (undefined),
        isEnding: false,
        isEnded: false,
        isAlarmed: false,
        thread: this.#thread,
        forThread: this.#forThread,
      };
      const ended = new Promise((_, reject) => {
        entry.end = () => reject(INTERRUPT);
      });
      waits.add(entry);
      this.#held = this.#forThread = false;
      this.#thread = 0;
      // One that was asked for before the wait began has had its wake-up call already.
      this.interrupt();
      if (entry.thread <= this.#lastInterrupted) endOther(entry);
      if (this.#hasRung && entry.thread === 0) this.#endForAlarm();
      try {
        const value = await firstOf(PromiseResolve(x ?? y), ended);
        this.#hasEnded(entry);
        return value;
      } catch (error) {
        if (error !== INTERRUPT) this.#hasEnded(entry);
        if (error?.pyodide_fatal_error) throw error;
        ArrayPrototypePush(this.#errors, { __proto__: null, error, entry });
        return Module.error;
      } finally {
        waits.delete(entry);
      }
    };
    env.syncifyHandler = new WebAssembly.Suspending(wait);

    // Stacks go on in the order in which their waits have ended, and each that fails comes here.
    const handleError = env.JsvPromise_Syncify_handleError;
    env.JsvPromise_Syncify_handleError = () => {
      const ended = ArrayPrototypeShift(this.#errors);
      if (ended?.error !== INTERRUPT) {
        Module.syncify_error = ended?.error;
        return handleError();
      }
      const { entry } = ended;
      if (entry.thread !== 0) this.#hit.add(entry.thread);
      // An interrupt by the host comes first, and the alarm when Python goes on.
      else if (entry.isAlarmed && !entry.isEnding && !entry.isEnded) {
        this.#alarmed = op_isolet_alarm_take(true) ? 1 : 2;
        this.#stopAlarm();
      } else this.#delivered();
      Module._PyErr_SetNone(Module.HEAPU32[Module._PyExc_KeyboardInterrupt >>> 2]);
    };
  }

  /**
   * Keeps interrupts out of the functions that wake an `await` of a promise. One that fell into
   * them would end them halfway: then it is lost, and the `await` never ends.
   */
  #hookAwait(Module, env) {
    const create = env.create_promise_handles;
    env.create_promise_handles = (onResult, onError, onDone, converter) => {
      const handles = create(onResult, onError, onDone, converter);
      const method = Module.HEAPU32[(onResult >>> 2) + METHOD_FUNCTION];
      if (method !== this.#setResult || handles === Module.error) return handles;
      return ArrayPrototypeMap(handles, (handle) => this.#holding(handle));
    };
  }

  #holding(handle) {
    const holding = (value) => {
      const wasHeld = this.#held;
      this.#held = true;
      try {
        return handle(value);
      } finally {
        this.#held = wasHeld;
      }
    };
    holding.destroy = handle.destroy;
    return holding;
  }

  /**
   * Ends the main thread's outermost wait, if it is in one and the request was not served
   * meanwhile.
   */
  interrupt() {
    const wait = this.#outermost();
    if (wait === undefined) return;
    if (!this.#isPending) {
      if (this.#interrupted()) this.#take();
    } else if (!this.#isEnding) {
      this.#endForInterrupt(wait);
    }
  }

  /**
   * Ends the main thread's outermost wait that this has not ended before: for an interrupt that a
   * callback got while Python waits, or that is to reach a task in a call.
   */
  endOutermost() {
    for (const entry of this.#waits) {
      if (entry.thread !== 0 || entry.isEnded) continue;
      entry.isEnded = true;
      entry.end();
      return;
    }
  }

  /**
   * Takes an interrupt: the main thread gets it when it goes on, a thread that computes at once.
   */
  #take() {
    this.#isPending = true;
    this.#isEnding = false;
    this.#hit.clear();
    this.#endOthers();
    const wait = this.#outermost();
    if (wait !== undefined) this.#endForInterrupt(wait);
  }

  #endForInterrupt(wait) {
    this.#isEnding = wait.isEnding = true;
    wait.end();
  }

  /**
   * Remembers that a wait which was to end for an interrupt had ended for itself: the interrupt is
   * still to be got.
   */
  #hasEnded(wait) {
    if (wait.isEnding) {
      this.#isEnding = false;
    } else if (wait.isEnded) {
      this.#isPending = true;
      this.#isEnding = false;
      bytesOf(this.#memory, this.#flag, 1)[0] = 1;
    }
  }

  #stopAlarm() {
    if (this.#alarm !== 0) clearTimeout(this.#alarm);
    this.#alarm = 0;
    this.#hasRung = false;
  }

  #delivered() {
    this.#isPending = this.#isEnding = false;
    this.#unwatch();
  }

  /**
   * Ends what other threads wait for, and until the run ends what those that are there now will
   * wait for.
   */
  #endOthers() {
    this.#lastInterrupted = this.#lastThread;
    for (const entry of this.#waits) endOther(entry);
  }

  #outermost() {
    for (const entry of this.#waits) {
      if (entry.thread === 0) return entry;
    }
    return undefined;
  }

  #unwatch() {
    if (!this.#counts) bytesOf(this.#memory, this.#flag, 1)[0] = 0;
  }
}

/** Ends the wait of a thread that is not the main one, unless another thread will. */
function endOther(entry) {
  if (entry.thread !== 0 && !entry.forThread) entry.end();
}
