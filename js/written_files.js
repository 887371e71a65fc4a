// Remembers which files Python opens for writing or moves, and tells the host of them when a
// command has ended. A command that writes none costs nothing.

import { primordials } from "ext:core/mod.js";
import { op_isolet_file_written } from "ext:core/ops";

const { SafeSet, StringPrototypeSlice, StringPrototypeStartsWith } = primordials;

const ACCESS = 0o3; // O_ACCMODE

export class WrittenFiles {
  #FS;
  /** Paths, not nodes: those would keep the contents of removed files. */
  #paths = new SafeSet();

  constructor(FS) {
    this.#FS = FS;
    FS.trackingDelegate.onOpenFile = (path, flags) => {
      if ((flags & ACCESS) !== 0) this.#paths.add(path);
    };
    FS.trackingDelegate.onMovePath = (from, to) => this.#move(from, to);
    FS.trackingDelegate.onDeletePath = (path) => this.#paths.delete(path);
  }

  #move(from, to) {
    const { node, path } = this.#FS.lookupPath(to);
    if (this.#FS.isDir(node.mode)) {
      const before = this.#paths;
      this.#paths = new SafeSet();
      for (const old of before) {
        const isInside = StringPrototypeStartsWith(old, `${from}/`);
        this.#paths.add(isInside ? path + StringPrototypeSlice(old, from.length) : old);
      }
    } else {
      this.#paths.delete(from);
      this.#paths.add(path);
    }
  }

  /** Drops what it remembers. */
  forget() {
    this.#paths = new SafeSet();
  }

  /** Tells of the files that are still there. */
  tell() {
    if (this.#paths.size === 0) return;
    const paths = this.#paths;
    this.#paths = new SafeSet();
    for (const path of paths) {
      try {
        const { mode, size } = this.#FS.lstat(path);
        if (this.#FS.isFile(mode)) op_isolet_file_written(path, size);
      } catch {
        // It was removed.
      }
    }
  }
}
