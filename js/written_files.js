// Remembers which files Python opens for writing or moves, and tells the host of them when a
// command has ended. A command that writes none costs nothing.

import { primordials } from "ext:core/mod.js";
import { op_isolet_file_written } from "ext:core/ops";

const { ReflectApply, SafeSet } = primordials;

const ACCESS = 0o3; // O_ACCMODE

export class WrittenFiles {
  #FS;
  /** Nodes, not paths: those of a renamed directory keep up with it. */
  #nodes = new SafeSet();

  constructor(FS) {
    this.#FS = FS;
    const { open, rename } = FS;
    FS.open = (path, flags, mode) => {
      const stream = ReflectApply(open, FS, [path, flags, mode]);
      if ((stream.flags & ACCESS) !== 0) this.#nodes.add(stream.node);
      return stream;
    };
    FS.rename = (from, to) => {
      ReflectApply(rename, FS, [from, to]);
      this.#nodes.add(FS.lookupPath(to).node);
    };
  }

  /** Tells of the files that are still there. */
  tell() {
    if (this.#nodes.size === 0) return;
    const nodes = this.#nodes;
    this.#nodes = new SafeSet();
    for (const node of nodes) {
      try {
        const path = this.#FS.getPath(node);
        const { mode, size } = this.#FS.lstat(path);
        if (this.#FS.isFile(mode)) op_isolet_file_written(path, size);
      } catch {
        // It was removed.
      }
    }
  }
}
