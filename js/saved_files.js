// The files in memory and the open descriptors, as a saved session has them. What lies beneath
// mount points is the host's; of it only the paths of open files are kept.

import { primordials } from "ext:core/mod.js";

const {
  ArrayPrototypePush,
  Error,
  MathMax,
  ObjectKeys,
  SafeMap,
  TypedArrayPrototypeGetBuffer,
  TypedArrayPrototypeGetByteOffset,
  Uint8Array,
} = primordials;

/** Flags that apply only while a file is opened: O_CREAT, O_EXCL, O_TRUNC. */
const OPENING = 0o1300;

export class SavedFiles {
  #FS;
  /** The buffer with the standard library, and whether bytes are those of it. */
  #stdlib;
  #isStdlib;
  /** The descriptors when the session began. */
  #begun = [];

  constructor(FS, stdlib, isStdlib) {
    this.#FS = FS;
    this.#stdlib = stdlib;
    this.#isStdlib = isStdlib;
  }

  /** Notes what is open when a session begins. */
  begin() {
    this.#begun = [];
    const { streams } = this.#FS;
    for (let fd = 0; fd < streams.length; fd++) this.#begun[fd] = streams[fd] ?? null;
  }

  /** Describes all; `put` takes the contents of a file, and returns their number. */
  save(put) {
    const FS = this.#FS;
    const loose = new SafeMap();
    const streams = this.#saveStreams(loose);
    const { nextInode, currentPath } = FS;
    const root = this.#saveNode(FS.root, put);
    const removed = [];
    loose.forEach((node) => ArrayPrototypePush(removed, this.#saveNode(node, put)));
    return { root, removed, streams, nextInode, currentPath };
  }

  #saveNode(node, put) {
    const FS = this.#FS;
    const { mode, atime, mtime, ctime, id } = node;
    const kept = { mode, times: [atime, mtime, ctime], id };
    if (FS.isDir(mode)) {
      const entries = [];
      const names = ObjectKeys(node.contents);
      for (let i = 0; i < names.length; i++) {
        const child = node.contents[names[i]];
        const { mode, id } = child;
        if (FS.isMountpoint(child)) {
          ArrayPrototypePush(entries, [names[i], { mode, isMount: true, id }]);
        } else if (FS.isDir(mode) || FS.isFile(mode) || FS.isLink(mode)) {
          ArrayPrototypePush(entries, [names[i], this.#saveNode(child, put)]);
        }
      }
      kept.entries = entries;
    } else if (FS.isLink(mode)) {
      kept.target = node.link;
    } else {
      // What was written first is an array of signed numbers.
      const buffer = TypedArrayPrototypeGetBuffer(node.contents);
      const start = TypedArrayPrototypeGetByteOffset(node.contents);
      const contents = new Uint8Array(buffer, start, node.usedBytes);
      const isStdlib = buffer === this.#stdlib;
      if (isStdlib && this.#isStdlib(contents)) kept.isStdlib = true;
      else kept.contents = put(contents);
    }
    return kept;
  }

  #saveStreams(loose) {
    const FS = this.#FS;
    const groups = new SafeMap();
    const saved = [];
    for (let fd = 0; fd < FS.streams.length; fd++) {
      const stream = FS.streams[fd];
      if (stream === null || stream === undefined) continue;
      const { node, flags, path, shared, seekable } = stream;
      if (!groups.has(shared)) groups.set(shared, groups.size);
      const kept = { fd, flags, group: groups.get(shared), position: stream.position };
      if (stream === this.#begun[fd]) {
        kept.isBegun = true;
      } else if (FS.isChrdev(node.mode)) {
        kept.device = path;
      } else if (node.mount?.opts?.index !== undefined) {
        kept.mounted = FS.getPath(node);
      } else if (node.mount !== FS.root.mount || !(FS.isFile(node.mode) || FS.isDir(node.mode))) {
        throw new Error(`descriptor ${fd} is a pipe or a socket, which cannot be saved; close it`);
      } else {
        const isThere = node.parent?.contents?.[node.name] === node || node === FS.root;
        kept.seekable = seekable;
        kept.path = path;
        if (isThere) {
          kept.place = FS.getPath(node);
        } else {
          if (!loose.has(node.id)) loose.set(node.id, node);
          kept.removed = node.id;
        }
      }
      ArrayPrototypePush(saved, kept);
    }
    return saved;
  }

  /** Makes all of it again; `take` returns contents by their number. */
  restore({ root, removed, streams, nextInode, currentPath }, take) {
    const FS = this.#FS;
    this.#set(FS.root, root, take);
    const loose = new SafeMap();
    for (let i = 0; i < removed.length; i++) {
      const node = this.#make(FS.root, `removed ${removed[i].id}`, removed[i]);
      this.#set(node, removed[i], take);
      this.#remove(FS.root, node);
      loose.set(removed[i].id, node);
    }
    FS.nextInode = MathMax(FS.nextInode, nextInode);
    this.#restoreStreams(streams, loose);
    try {
      FS.chdir(currentPath);
    } catch {
      FS.chdir("/"); // it was beneath a mount that this session does not have
    }
  }

  #fill(directory, { entries }, take) {
    const FS = this.#FS;
    const kept = new SafeMap(entries);
    const names = ObjectKeys(directory.contents);
    for (let i = 0; i < names.length; i++) {
      const node = directory.contents[names[i]];
      if (!kept.has(names[i]) && !FS.isMountpoint(node) && !FS.isChrdev(node.mode)) {
        this.#remove(directory, node);
      }
    }
    for (let i = 0; i < entries.length; i++) {
      const [name, saved] = entries[i];
      let node = directory.contents[name];
      if (node !== undefined && FS.isMountpoint(node)) continue;
      if (node !== undefined && (node.mode ^ saved.mode) >> 12 !== 0) {
        this.#remove(directory, node);
        node = undefined;
      }
      node ??= this.#make(directory, name, saved);
      if (!saved.isMount) this.#set(node, saved, take);
    }
  }

  #make(directory, name, { mode, id }) {
    const FS = this.#FS;
    const { nextInode } = FS;
    FS.nextInode = id;
    const node = FS.filesystems.MEMFS.createNode(directory, name, mode, 0);
    FS.nextInode = MathMax(nextInode, FS.nextInode);
    return node;
  }

  #set(node, saved, take) {
    if (saved.entries !== undefined) {
      this.#fill(node, saved, take);
    } else if (saved.target !== undefined) {
      node.link = saved.target;
    } else if (saved.contents !== undefined) {
      node.contents = take(saved.contents);
      node.usedBytes = node.contents.length;
    }
    node.mode = saved.mode;
    [node.atime, node.mtime, node.ctime] = saved.times;
  }

  #remove(directory, node) {
    const FS = this.#FS;
    if (FS.isDir(node.mode)) {
      const names = ObjectKeys(node.contents);
      for (let i = 0; i < names.length; i++) this.#remove(node, node.contents[names[i]]);
    }
    FS.hashRemoveNode(node);
    delete directory.contents[node.name];
  }

  #restoreStreams(streams, loose) {
    const FS = this.#FS;
    const begun = [];
    for (let fd = 0; fd < FS.streams.length; fd++) begun[fd] = FS.streams[fd] ?? null;
    FS.streams.length = 0;
    const groups = new SafeMap();
    for (let i = 0; i < streams.length; i++) {
      const { fd, group } = streams[i];
      const first = groups.get(group);
      let stream;
      if (streams[i].isBegun) {
        stream = FS.streams[fd] = begun[fd];
      } else if (first !== undefined) {
        stream = FS.dupStream(first, fd);
      } else {
        stream = this.#open(streams[i], begun, loose);
      }
      // A file of a mount that is not there is a closed descriptor.
      if (stream === null || stream === undefined) continue;
      if (first === undefined) groups.set(group, stream);
      stream.flags = streams[i].flags;
      stream.position = streams[i].position;
    }
  }

  #open({ fd, flags, path, place, removed, device, mounted, seekable }, begun, loose) {
    const FS = this.#FS;
    if (device !== undefined) {
      const same = begun.find((stream) => stream?.path === device);
      if (same !== undefined) return FS.dupStream(same, fd);
    }
    if (removed === undefined && place === undefined) {
      try {
        const opened = FS.open(device ?? mounted, flags & ~OPENING);
        if (opened.fd !== fd) {
          FS.streams[fd] = opened;
          FS.streams[opened.fd] = null;
          opened.fd = fd;
        }
        return opened;
      } catch {
        return null;
      }
    }
    const node = removed === undefined ? FS.lookupPath(place).node : loose.get(removed);
    const { stream_ops } = node;
    const ungotten = [];
    return FS.createStream(
      { node, path, flags, seekable, position: 0, stream_ops, ungotten, error: false },
      fd,
    );
  }
}
