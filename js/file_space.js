// Makes failing system calls of a full memory: the files that the guest writes are buffers of
// JavaScript's, and an exception that is none of Emscripten's would be the end of the interpreter.

import { primordials } from "ext:core/mod.js";

const { ObjectPrototypeIsPrototypeOf, RangeErrorPrototype } = primordials;

const ENOMEM = 48;
const ENOSPC = 51;

/** The system calls that make buffers, each with what it returns when it cannot have one. */
const CALLS = {
  __proto__: null,
  fd_write: ENOSPC,
  fd_pwrite: ENOSPC,
  __syscall_fallocate: -ENOSPC,
  __syscall_ftruncate64: -ENOSPC,
  __syscall_truncate64: -ENOSPC,
  __syscall_pipe: -ENOMEM,
};

/** Replaces these imports of WebAssembly. */
export function hookSpace(env) {
  for (const name in CALLS) {
    const call = env[name];
    const failed = CALLS[name];
    env[name] = (a, b, c, d, e) => {
      try {
        return call(a, b, c, d, e);
      } catch (error) {
        if (!ObjectPrototypeIsPrototypeOf(RangeErrorPrototype, error)) throw error;
        return failed;
      }
    };
  }
}
