// The guest's shell: an instance of its WebAssembly module, whose files are the interpreter's. The
// first command makes it. It is guest code, and reaches no more than Python does.

import { primordials } from "ext:core/mod.js";
import { bytesOf } from "ext:isolet/calls.js";
import { growShell } from "ext:isolet/wasm.js";
import {
  op_isolet_entropy,
  op_isolet_shell_interrupted,
  op_isolet_shell_module,
  op_isolet_wall_clock,
  op_isolet_watch_shell,
} from "ext:core/ops";

const {
  ArrayPrototypePush,
  BigInt,
  DataView,
  MathMax,
  MathRound,
  ObjectFreeze,
  TypedArrayPrototypeSet,
  Uint8Array,
} = primordials;
const { Instance } = WebAssembly;
const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** Emscripten's error numbers, as Linux has them. */
const ERRNOS = {
  __proto__: null,
  2: 13, // EACCES
  10: 16, // EBUSY
  20: 17, // EEXIST
  22: 27, // EFBIG
  28: 22, // EINVAL
  31: 21, // EISDIR
  32: 40, // ELOOP
  37: 36, // ENAMETOOLONG
  44: 2, // ENOENT
  51: 28, // ENOSPC
  52: 38, // ENOSYS
  54: 20, // ENOTDIR
  55: 39, // ENOTEMPTY
  63: 1, // EPERM
  69: 30, // EROFS
  75: 18, // EXDEV
  138: 95, // ENOTSUP
};
const EIO = 5;
const NOT_SUPPORTED = 95;

/** The kinds of files in a record, by their types. */
const KINDS = { __proto__: null, 0o100000: 0, 0o040000: 1, 0o120000: 2 };
const OTHER = 3;
const TYPE = 0o170000;
const PERMISSIONS = 0o7777;
const RECORD = 40; // bytes
/** How many bytes are read of a device, which has no end. */
const MOST_OF_A_DEVICE = 1 << 20;
/** The permissions of what the shell makes, as with the usual umask. */
const NEW_FILE = { mode: 0o644 };
const NEW_DIRECTORY = 0o755;

/** A step of a shell that is no more. */
const LOST = 4;
/** What `output` says of a command that may not go on. */
const STOPPED = 2;

const nothing = new Uint8Array(0);

class Shell {
  #FS;
  #interpreter;
  /** @type {any} */
  #exports = null;
  /** What the shell takes next. */
  #kept = nothing;
  /** The address of the byte that ends the run, in a recorded session. */
  #flag = 0;
  /** The descriptors of each session's output. */
  #outputs = { __proto__: null };

  constructor(Module, interpreter) {
    this.#FS = Module.FS;
    this.#interpreter = interpreter;
  }

  /** Begins a session with the configuration at `address`; 0 if it is wrong. */
  begin(address, length) {
    if (this.#exports === null) this.#load();
    return this.#guarded(() => this.#exports.session_new(...this.#given(address, length)), 0);
  }

  end(session) {
    delete this.#outputs[session];
    if (this.#exports !== null) this.#guarded(() => this.#exports.session_free(session), 0);
  }

  /** After a trap the module is in no known state, and nothing of it is used again. */
  #guarded(call, lost) {
    if (this.#exports === null) return lost;
    try {
      return call();
    } catch {
      this.#exports = null;
      return lost;
    }
  }

  /** Runs a request with its input, whose output goes to two descriptors. Returns the step. */
  run(session, request, requestLength, stdin, stdinLength, out, err) {
    this.#outputs[session] = [out, err];
    return this.#guarded(() => {
      this.#watch(session);
      const given = this.#given(request, requestLength);
      return this.#exports.run(session, ...given, ...this.#given(stdin, stdinLength));
    }, LOST);
  }

  resume(session) {
    return this.#guarded(() => {
      this.#watch(session);
      return this.#exports.resume(session);
    }, LOST);
  }

  /** Has an interrupt end the run of this session. */
  #watch(session) {
    const flag = this.#exports.session_flag(session) >>> 0;
    this.#flag = op_isolet_watch_shell(this.#exports.memory, flag) ? 0 : flag;
  }

  /** The time, which the shell looks at wherever it can end. */
  #now() {
    if (this.#flag !== 0 && op_isolet_shell_interrupted()) this.#bytes(this.#flag, 1)[0] = 1;
    return op_isolet_wall_clock() * 1000;
  }

  /** Gives the run of a session more input; nothing more comes if it is empty. */
  more(session, address, length) {
    this.#guarded(() => this.#exports.input(session, ...this.#given(address, length)), 0);
  }

  /** Says in the text what the state of a session is, if there is one. */
  state(session) {
    return this.#guarded(() => this.#exports.session_state(session), 0);
  }

  /** Has the run of a session end with its next step. */
  cancel(session) {
    this.#guarded(() => {
      this.#bytes(this.#exports.session_flag(session), 1)[0] = 1;
    }, 0);
  }

  answer(session, call, status) {
    this.#guarded(() => this.#exports.answer(session, call, status), 0);
  }

  /** Writes what a command prints that is carried out here; whether it may go on. */
  output(session, call, descriptor, address, length) {
    return this.#guarded(() => {
      this.#watch(session);
      const given = this.#given(address, length);
      return this.#exports.output(session, call, descriptor, ...given);
    }, STOPPED);
  }

  /** When the run of a session has something to do, in microseconds since 1970; -1 if never. */
  nextWake(session) {
    return this.#guarded(() => this.#exports.next_wake(session), -1);
  }

  /** Goes on until there is more of the pipe that such a command reads. Returns the step. */
  pull(session, call) {
    return this.#guarded(() => {
      this.#watch(session);
      return this.#exports.pull(session, call);
    }, LOST);
  }

  textSize() {
    return this.#exports === null ? 0 : this.#exports.reply_text_len();
  }

  /** Copies what the last step says to `address`. */
  text(address, length) {
    this.#copy(this.#exports.reply_text(), address, length);
  }

  inputSize() {
    return this.#exports.reply_bytes_len();
  }

  /** Copies the input of a command that the last step asks for. */
  input(address, length) {
    this.#copy(this.#exports.reply_bytes(), address, length);
  }

  #load() {
    const { exports } = new Instance(op_isolet_shell_module(), { isolet: this.#imports() });
    this.#exports = exports;
  }

  #bytes(address, length) {
    return new Uint8Array(this.#exports.memory.buffer, address >>> 0, length);
  }

  #copy(from, to, length) {
    TypedArrayPrototypeSet(bytesOf(this.#interpreter, to, length), this.#bytes(from, length));
  }

  /** Copies bytes of Python into a buffer that the shell takes over. */
  #given(address, length) {
    const buffer = this.#exports.alloc(length) >>> 0;
    const bytes = bytesOf(this.#interpreter, address, length);
    TypedArrayPrototypeSet(this.#bytes(buffer, length), bytes);
    return [buffer, length];
  }

  #keep(bytes) {
    this.#kept = bytes;
    return bytes.length;
  }

  #path(address, length) {
    return decoder.decode(this.#bytes(address, length));
  }

  /** The content of a file; of a device, what one read gives. */
  #read(path) {
    const FS = this.#FS;
    if (!FS.isChrdev(FS.stat(path).mode)) return FS.readFile(path);
    const stream = FS.open(path, "r");
    try {
      const bytes = new Uint8Array(MOST_OF_A_DEVICE);
      return bytes.subarray(0, FS.read(stream, bytes, 0, bytes.length));
    } finally {
      FS.close(stream);
    }
  }

  #record(view, at, { mode, size, mtime, ctime, nlink, ino }) {
    const time = (date) => BigInt(MathMax(0, MathRound(Number(date) * 1000)));
    view.setUint32(at, KINDS[mode & TYPE] ?? OTHER, true);
    view.setUint32(at + 4, mode & PERMISSIONS, true);
    view.setBigUint64(at + 8, BigInt(size), true);
    view.setBigUint64(at + 16, time(mtime), true);
    view.setBigUint64(at + 24, time(ctime), true);
    view.setUint32(at + 32, nlink, true);
    view.setUint32(at + 36, ino, true);
  }

  #list(directory) {
    const FS = this.#FS;
    const entries = [];
    let total = 0;
    for (const name of FS.readdir(directory)) {
      if (name === "." || name === "..") continue;
      const text = encoder.encode(name);
      ArrayPrototypePush(entries, { text, stat: FS.lstat(`${directory}/${name}`) });
      total += 4 + text.length + RECORD;
    }
    const bytes = new Uint8Array(total);
    const view = new DataView(bytes.buffer);
    let at = 0;
    for (const { text, stat } of entries) {
      view.setUint32(at, text.length, true);
      TypedArrayPrototypeSet(bytes, text, at + 4);
      this.#record(view, at + 4 + text.length, stat);
      at += 4 + text.length + RECORD;
    }
    return bytes;
  }

  #removeTree(path) {
    const FS = this.#FS;
    if (!FS.isDir(FS.lstat(path).mode)) return FS.unlink(path);
    for (const name of FS.readdir(path)) {
      if (name !== "." && name !== "..") this.#removeTree(`${path}/${name}`);
    }
    FS.rmdir(path);
  }

  #append(path, bytes) {
    const FS = this.#FS;
    const stream = FS.open(path, "a", NEW_FILE.mode);
    try {
      FS.write(stream, bytes, 0, bytes.length);
    } finally {
      FS.close(stream);
    }
  }

  #imports() {
    const FS = this.#FS;
    const path = (address, length) => this.#path(address, length);
    /** A function of files: what it returns, or a negated error number. */
    const files = (what) => (...given) => {
      try {
        return what(...given) ?? 0;
      } catch (error) {
        return -(ERRNOS[error?.errno] ?? EIO);
      }
    };
    return {
      read_file: files((at, length) => this.#keep(this.#read(path(at, length)))),
      write_file: files((at, length, from, size) =>
        FS.writeFile(path(at, length), this.#bytes(from, size).slice(), NEW_FILE)
      ),
      append_file: files((at, length, from, size) =>
        this.#append(path(at, length), this.#bytes(from, size).slice())
      ),
      mkdir: files((at, length, parents) => {
        if (parents) FS.mkdirTree(path(at, length), NEW_DIRECTORY);
        else FS.mkdir(path(at, length), NEW_DIRECTORY);
      }),
      remove: files((at, length, tree) => {
        const found = path(at, length);
        if (tree) this.#removeTree(found);
        else if (FS.isDir(FS.lstat(found).mode)) FS.rmdir(found);
        else FS.unlink(found);
      }),
      stat: files((at, length, record) => {
        const found = FS.lstat(path(at, length));
        this.#record(new DataView(this.#exports.memory.buffer), record >>> 0, found);
      }),
      read_dir: files((at, length) => this.#keep(this.#list(path(at, length)))),
      rename: files((at, length, to, size) => FS.rename(path(at, length), path(to, size))),
      copy: files((at, length, to, size) => {
        const from = path(at, length);
        FS.writeFile(path(to, size), FS.readFile(from), { mode: FS.stat(from).mode & PERMISSIONS });
      }),
      symlink: files((at, length, to, size) => void FS.symlink(path(at, length), path(to, size))),
      link: () => -NOT_SUPPORTED,
      read_link: files((at, length) => this.#keep(encoder.encode(FS.readlink(path(at, length))))),
      chmod: files((at, length, mode) => FS.chmod(path(at, length), mode)),
      set_modified_time: files((at, length, micros) =>
        FS.utime(path(at, length), micros / 1000, micros / 1000)
      ),
      take: (at) => {
        TypedArrayPrototypeSet(this.#bytes(at, this.#kept.length), this.#kept);
        this.#kept = nothing;
      },
      write: (session, descriptor, at, length) => {
        const stream = FS.getStream(this.#outputs[session]?.[descriptor - 1]);
        try {
          if (stream) FS.write(stream, this.#bytes(at, length).slice(), 0, length);
        } catch {
          // Nobody reads it, or there is no space: it is lost, as that of a command in the
          // background is. An exception would be a trap in the module.
        }
      },
      now_micros: () => this.#now(),
      random: (at, length) => op_isolet_entropy(this.#bytes(at, length)),
      grow: (pages) => growShell(this.#exports.memory, pages),
    };
  }
}

/** What Python calls. */
export function shellCalls(Module, interpreter) {
  const shell = new Shell(Module, interpreter);
  return ObjectFreeze({
    __proto__: null,
    begin: (config, length) => shell.begin(config, length),
    end: (session) => shell.end(session),
    run: (session, request, requestLength, stdin, stdinLength, out, err) =>
      shell.run(session, request, requestLength, stdin, stdinLength, out, err),
    resume: (session) => shell.resume(session),
    cancel: (session) => shell.cancel(session),
    more: (session, address, length) => shell.more(session, address, length),
    state: (session) => shell.state(session),
    done: (session, call, status) => shell.answer(session, call, status),
    output: (session, call, descriptor, address, length) =>
      shell.output(session, call, descriptor, address, length),
    pull: (session, call) => shell.pull(session, call),
    next_wake: (session) => shell.nextWake(session),
    text_size: () => shell.textSize(),
    text: (address, length) => shell.text(address, length),
    input_size: () => shell.inputSize(),
    input: (address, length) => shell.input(address, length),
  });
}
