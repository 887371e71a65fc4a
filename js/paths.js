// Paths as Linux takes them: Emscripten has no longest name, and takes `file/` for `file`.

import { primordials } from "ext:core/mod.js";

const { ObjectKeys } = primordials;

const EISDIR = 31;
const ENAMETOOLONG = 37;
const ENOTDIR = 54;

const MAX_NAME = 255; // bytes
const MAX_PATH = 4096; // bytes, with the zero at the end
const SLASH = 0x2f;
const DOT = 0x2e;
const CREATE = 0o100; // O_CREAT
const WORKING_DIRECTORY = -100; // AT_FDCWD

/** Which arguments of system calls are paths. */
const CALLS = {
  __proto__: null,
  __syscall_chdir: [0],
  __syscall_chmod: [0],
  __syscall_faccessat: [1],
  __syscall_fchmodat2: [1],
  __syscall_fchownat: [1],
  __syscall_lstat64: [0],
  __syscall_mkdirat: [1],
  __syscall_mknodat: [1],
  __syscall_newfstatat: [1],
  __syscall_openat: [1],
  __syscall_readlinkat: [1],
  __syscall_renameat: [1, 3],
  __syscall_rmdir: [0],
  __syscall_stat64: [0],
  __syscall_statfs64: [0],
  __syscall_symlinkat: [2],
  __syscall_truncate64: [0],
  __syscall_unlinkat: [1],
  __syscall_utimensat: [1],
};
/** Those among them that `file/` fails for, unless the file is a directory. */
const OF_FILES = { __proto__: null, __syscall_stat64: 0, __syscall_openat: 1 };

/** Replaces these imports of WebAssembly. */
export function hookPaths(Module, env) {
  /** Whether a path is too long, or has too long a name; or its end is one of a directory. */
  const look = (address) => {
    const { HEAPU8 } = Module;
    const start = address >>> 0;
    let name = 0;
    let at = start;
    for (; HEAPU8[at] !== 0 && at < HEAPU8.length; at++) {
      if (at - start === MAX_PATH - 1) return -ENAMETOOLONG;
      name = HEAPU8[at] === SLASH ? 0 : name + 1;
      if (name > MAX_NAME) return -ENAMETOOLONG;
    }
    const last = HEAPU8[at - 1];
    const isDirectory =
      at - start > 1 && (last === SLASH || (last === DOT && HEAPU8[at - 2] === SLASH));
    return isDirectory ? at - start : 0;
  };
  /** The type of what is there without the end; `null` if nothing is. */
  const typeOf = (path) => {
    try {
      return Module.FS.stat(path).mode & 0o170000;
    } catch {
      return null;
    }
  };
  const names = ObjectKeys(CALLS);
  for (let i = 0; i < names.length; i++) {
    const name = names[i];
    const call = env[name];
    if (call === undefined) continue;
    const which = CALLS[name];
    const ofFiles = OF_FILES[name];
    env[name] = (...given) => {
      for (let j = 0; j < which.length; j++) {
        const found = look(given[which[j]]);
        if (found < 0) return found;
        if (found === 0 || ofFiles === undefined) continue;
        const path = Module.UTF8ToString(given[ofFiles]);
        if (ofFiles > 0 && given[0] !== WORKING_DIRECTORY && path[0] !== "/") continue;
        const type = typeOf(path);
        if (type === null && name === "__syscall_openat" && (given[2] & CREATE) !== 0) {
          return -EISDIR;
        }
        if (type !== null && type !== 0o040000) return -ENOTDIR;
      }
      return call(...given);
    };
  }
}
