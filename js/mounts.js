// A file system driver for Emscripten: what lies beneath a mount point is asked of the host, call
// by call. Nothing is decided here: the host checks every path, handle and byte count. Nothing is
// cached but what was found among the files of packages, to which more may come and which never
// change: an import looks at each several times.

import { primordials } from "ext:core/mod.js";
import {
  op_isolet_file_close,
  op_isolet_file_link,
  op_isolet_file_list,
  op_isolet_file_make_directory,
  op_isolet_file_mode,
  op_isolet_file_open,
  op_isolet_file_read,
  op_isolet_file_read_link,
  op_isolet_file_remove,
  op_isolet_file_remove_directory,
  op_isolet_file_rename,
  op_isolet_file_resize,
  op_isolet_file_resize_at,
  op_isolet_file_stat,
  op_isolet_file_stat_at,
  op_isolet_file_sync,
  op_isolet_file_times,
  op_isolet_file_write,
  op_isolet_mount_points,
} from "ext:core/ops";

const { SafeMap } = primordials;

const EINVAL = 28;
const ENODEV = 43;
const ENOSYS = 52;

const DIRECTORY = 0o040000;
const REGULAR = 0o100000;
const LINK = 0o120000;
/** File types as the host numbers them. */
const TYPES = [REGULAR, DIRECTORY, LINK];

const CREATE_NEW = 0o300; // O_CREAT | O_EXCL
const WRITE_ONLY = 1;
const ACCESS_AND_APPEND = 0o2003; // O_ACCMODE | O_APPEND
const SEEK_CUR = 1;
const SEEK_END = 2;

/** Where the files of packages are. */
const PACKAGES = "/lib/python3.14/site-packages";

/** Where nothing is mounted but for a moment. */
const REHEARSAL = "/rehearsal";

/**
 * What the host writes about a file: type, permissions, size, three times in milliseconds, inode.
 */
const stat = new Float64Array(7);
const statBytes = new Uint8Array(stat.buffer);

let driver;

/** Mounts something and unmounts it, so that V8 has compiled all that by the time it matters. */
export function rehearseMount({ FS }) {
  driver ??= makeDriver(FS);
  FS.mkdirTree(REHEARSAL);
  FS.mount(driver, { index: 0 }, REHEARSAL);
  FS.unmount(REHEARSAL);
  FS.rmdir(REHEARSAL);
}

/** Mounts what the host offers this session, at these paths. */
export function mountAll({ FS }, points = op_isolet_mount_points()) {
  driver ??= makeDriver(FS);
  for (let index = 0; index < points.length; index++) {
    FS.mkdirTree(points[index]);
    FS.mount(driver, { index, isFixed: points[index] === PACKAGES }, points[index]);
  }
}

function makeDriver(FS) {
  /** Throws what a negative result stands for. */
  const check = (result) => {
    if (result < 0) throw new FS.ErrnoError(-result);
    return result;
  };

  /** The path of a node beneath its mount. */
  const pathOf = (node) => {
    let path = "";
    while (node.parent !== node) {
      path = path === "" ? node.name : `${node.name}/${path}`;
      node = node.parent;
    }
    return path;
  };
  const join = (parent, name) => {
    const path = pathOf(parent);
    return path === "" ? name : `${path}/${name}`;
  };
  const indexOf = (node) => node.mount.opts.index;
  const isFixed = (node) => node.mount.opts.isFixed === true;

  /**
   * A node that Emscripten's table of names does not know, so that each lookup asks the host anew
   * and nothing stays behind that the host has changed meanwhile. It permits everything: that is
   * for the host to decide, and to tell of.
   */
  const makeNode = (parent, name, type) => {
    const node = new FS.FSNode(parent, name, type | 0o777, 0);
    node.node_ops = node_ops;
    node.stream_ops = stream_ops;
    return node;
  };

  // Emscripten puts a renamed node into its table once the driver has returned.
  let renamed = null;
  const forgetRenamed = () => {
    if (renamed !== null) FS.hashRemoveNode(renamed);
    renamed = null;
  };

  const attributes = (node) => {
    const [type, mode, size, modified, accessed, changed, inode] = stat;
    return {
      dev: 100 + indexOf(node),
      ino: inode,
      mode: TYPES[type] | mode,
      nlink: 1,
      uid: 0,
      gid: 0,
      rdev: 0,
      size,
      atime: new Date(accessed),
      mtime: new Date(modified),
      ctime: new Date(changed),
      blksize: 4096,
      blocks: Math.ceil(size / 512),
    };
  };
  const statAt = (node, path) => check(op_isolet_file_stat_at(indexOf(node), path, statBytes));

  const setAttributes = (node, attributes, resize) => {
    const path = pathOf(node);
    const { mode, atime, mtime, size, dontFollow } = attributes;
    if (mode !== undefined && mode !== null) {
      if (dontFollow) throw new FS.ErrnoError(ENOSYS);
      check(op_isolet_file_mode(indexOf(node), path, mode & 0o7777));
    }
    if (typeof (atime ?? mtime) === "number") {
      statAt(node, path);
      check(op_isolet_file_times(indexOf(node), path, atime ?? stat[4], mtime ?? stat[3]));
    }
    if (size !== undefined) check(resize(size));
  };

  const lookupFixed = (parent, name) => {
    parent.found ??= new SafeMap();
    const known = parent.found.get(name);
    if (known !== undefined) return known;
    statAt(parent, join(parent, name));
    const node = makeNode(parent, name, TYPES[stat[0]]);
    node.kept = attributes(node);
    parent.found.set(name, node);
    return node;
  };

  const node_ops = {
    getattr(node) {
      if (node.kept !== undefined) return node.kept;
      statAt(node, pathOf(node));
      return attributes(node);
    },
    setattr(node, attributes) {
      setAttributes(node, attributes, (size) =>
        op_isolet_file_resize_at(indexOf(node), pathOf(node), size),
      );
    },
    lookup(parent, name) {
      if (isFixed(parent)) return lookupFixed(parent, name);
      forgetRenamed();
      statAt(parent, join(parent, name));
      return makeNode(parent, name, TYPES[stat[0]]);
    },
    mknod(parent, name, mode) {
      const index = indexOf(parent);
      const path = join(parent, name);
      if (FS.isDir(mode)) {
        check(op_isolet_file_make_directory(index, path, mode & 0o777));
      } else if (FS.isFile(mode)) {
        const file = check(op_isolet_file_open(index, path, WRITE_ONLY | CREATE_NEW));
        check(op_isolet_file_close(file));
      } else {
        throw new FS.ErrnoError(EINVAL);
      }
      return makeNode(parent, name, FS.isDir(mode) ? DIRECTORY : REGULAR);
    },
    rename(node, directory, name) {
      forgetRenamed();
      check(op_isolet_file_rename(indexOf(node), pathOf(node), join(directory, name)));
      node.name = name;
      renamed = node;
    },
    unlink(parent, name) {
      check(op_isolet_file_remove(indexOf(parent), join(parent, name)));
    },
    rmdir(parent, name) {
      check(op_isolet_file_remove_directory(indexOf(parent), join(parent, name)));
    },
    readdir(node) {
      const listed = op_isolet_file_list(indexOf(node), pathOf(node));
      check(listed[0]);
      return [".", "..", ...listed[1]];
    },
    symlink(parent, name, target) {
      check(op_isolet_file_link(indexOf(parent), join(parent, name), target));
      return makeNode(parent, name, LINK);
    },
    readlink(node) {
      const read = op_isolet_file_read_link(indexOf(node), pathOf(node));
      check(read[0]);
      return read[1];
    },
  };

  const view = (buffer, offset, length) =>
    new Uint8Array(buffer.buffer, buffer.byteOffset + offset, length);

  const stream_ops = {
    getattr(stream) {
      if (stream.node.kept !== undefined) return stream.node.kept;
      const { handle } = stream.shared;
      if (handle === undefined) return node_ops.getattr(stream.node);
      check(op_isolet_file_stat(handle, statBytes));
      return attributes(stream.node);
    },
    setattr(stream, attributes) {
      setAttributes(stream.node, attributes, (size) =>
        op_isolet_file_resize(stream.shared.handle, size),
      );
    },
    open(stream) {
      if (FS.isDir(stream.node.mode)) return;
      const { node, flags, shared } = stream;
      const access = flags & ACCESS_AND_APPEND;
      shared.handle = check(op_isolet_file_open(indexOf(node), pathOf(node), access));
      shared.users = 1;
    },
    dup(stream) {
      stream.shared.users++;
    },
    close(stream) {
      const { shared } = stream;
      if (shared.handle !== undefined && --shared.users === 0) {
        check(op_isolet_file_close(shared.handle));
      }
    },
    read(stream, buffer, offset, length, position) {
      // Whoever reads a file to its end asks once more.
      if (position >= stream.node.kept?.size) return 0;
      return check(
        op_isolet_file_read(stream.shared.handle, position, view(buffer, offset, length)),
      );
    },
    write: (stream, buffer, offset, length, position) =>
      check(op_isolet_file_write(stream.shared.handle, position, view(buffer, offset, length))),
    llseek(stream, offset, whence) {
      let position = offset;
      if (whence === SEEK_CUR) {
        position += stream.position;
      } else if (whence === SEEK_END && FS.isFile(stream.node.mode)) {
        check(op_isolet_file_stat(stream.shared.handle, statBytes));
        position += stat[2];
      }
      if (position < 0) throw new FS.ErrnoError(EINVAL);
      return position;
    },
    /** Maps a copy; what is written to it comes back through `msync`. */
    mmap(stream, length, position, prot, flags) {
      if (!FS.isFile(stream.node.mode)) throw new FS.ErrnoError(ENODEV);
      check(op_isolet_file_stat(stream.shared.handle, statBytes));
      const contents = new Uint8Array(Math.max(0, Math.min(length, stat[2] - position)));
      for (let done = 0; done < contents.length; ) {
        const rest = contents.subarray(done);
        const count = check(op_isolet_file_read(stream.shared.handle, position + done, rest));
        if (count === 0) break;
        done += count;
      }
      const node = { mode: REGULAR, contents };
      return FS.filesystems.MEMFS.ops_table.file.stream.mmap({ node }, length, 0, prot, flags);
    },
    msync(stream, buffer, offset, length) {
      stream_ops.write(stream, buffer, 0, length, offset);
      return 0;
    },
    fsync(stream) {
      const { handle } = stream.shared;
      return handle === undefined ? 0 : check(op_isolet_file_sync(handle));
    },
  };

  return {
    mount(mount) {
      // Its parent is itself, which makes it a root; its mount is set by the caller, too late for
      // us.
      const root = makeNode(null, "/", DIRECTORY);
      root.mount = mount;
      return root;
    },
  };
}
