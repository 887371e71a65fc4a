// The module's imports by Node's files: a directory is the root of the shell's files.
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { webcrypto } from "node:crypto";

const encoder = new TextEncoder();
const decoder = new TextDecoder();
const errnos = {
  EPERM: 1, ENOENT: 2, EACCES: 13, EEXIST: 17, EXDEV: 18, ENOTDIR: 20, EISDIR: 21, EINVAL: 22,
  ENOSPC: 28, EROFS: 30, ENAMETOOLONG: 36, ENOSYS: 38, ENOTEMPTY: 39, ELOOP: 40, EOPNOTSUPP: 95,
};

export const finished = 1;
export const call = 2;
export const wait = 3;
export const input = 5;
export const piece = 6;

/** One instance of the module, with its sessions. */
export class Shell {
  /** `output(session, descriptor, bytes)` gets what is printed. */
  constructor(module, root, output) {
    this.root = root;
    this.output = output;
    this.kept = new Uint8Array();
    this.exports = new WebAssembly.Instance(module, { isolet: this.imports() }).exports;
  }

  bytes(at, len) {
    return new Uint8Array(this.exports.memory.buffer, at, len);
  }

  path(at, len) {
    return path.join(this.root, decoder.decode(this.bytes(at, len)));
  }

  /** Copies bytes into a buffer that the next call takes over. */
  put(bytes) {
    const at = this.exports.alloc(bytes.length) >>> 0;
    this.bytes(at, bytes.length).set(bytes);
    return [at, bytes.length];
  }

  putJson(value) {
    return this.put(encoder.encode(JSON.stringify(value)));
  }

  reply() {
    const { reply_text, reply_text_len, reply_bytes, reply_bytes_len } = this.exports;
    return {
      text: decoder.decode(this.bytes(reply_text() >>> 0, reply_text_len())),
      bytes: this.bytes(reply_bytes() >>> 0, reply_bytes_len()).slice(),
    };
  }

  step(next) {
    const { text, bytes } = this.reply();
    if (next === 0) throw new Error(text);
    return { next, value: JSON.parse(text), bytes };
  }

  session(config) {
    const session = this.exports.session_new(...this.putJson(config));
    if (session === 0) throw new Error(this.reply().text);
    return session;
  }

  run(session, request, stdin) {
    const input = stdin === undefined ? [0, 0] : this.put(stdin);
    return this.step(this.exports.run(session, ...this.putJson(request), ...input));
  }

  /** Writes to a stream of a call: 0 if it may go on, 1 if nobody reads it, 2 if it was stopped. */
  write(session, id, descriptor, bytes) {
    return this.exports.output(session, id, descriptor, ...this.put(bytes));
  }

  /** Goes on until there is more of the pipe that a call reads. */
  pull(session, id) {
    return this.step(this.exports.pull(session, id));
  }

  answer(session, id, status, stdout = new Uint8Array(), stderr = new Uint8Array()) {
    this.write(session, id, 1, stdout);
    this.write(session, id, 2, stderr);
    this.exports.answer(session, id, status);
  }

  /** More of a live input; nothing is its end. */
  input(session, bytes = new Uint8Array()) {
    this.exports.input(session, ...this.put(bytes));
  }

  resume(session) {
    return this.step(this.exports.resume(session));
  }

  state(session) {
    return this.step(this.exports.session_state(session)).value;
  }

  free(session) {
    this.exports.session_free(session);
  }

  /**
   * Runs to the end; `command(call)` carries out the host's commands, and `more()` gives the live
   * input, or nothing at its end.
   */
  finish(session, request, stdin, command, more = () => undefined) {
    let step = this.run(session, request, stdin);
    while (step.next !== finished) {
      if (step.next === call) {
        const { status, stdout, stderr } = command(step.value, step.bytes);
        this.answer(session, step.value.id, status, stdout, stderr);
      } else if (step.next === input) {
        this.input(session, more());
      } else {
        const millis = Math.max(0, step.value / 1000 - Date.now());
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, millis);
      }
      step = this.resume(session);
    }
    return step.value;
  }

  imports() {
    const guard = (what) => (...args) => {
      try {
        return what(...args) ?? 0;
      } catch (error) {
        return -(errnos[error.code] ?? 5);
      }
    };
    const keep = (bytes) => {
      this.kept = bytes;
      return bytes.length;
    };
    const stat = (view, at, found) => {
      const kind = found.isFile() ? 0 : found.isDirectory() ? 1 : found.isSymbolicLink() ? 2 : 3;
      view.setUint32(at, kind, true);
      view.setUint32(at + 4, found.mode & 0o7777, true);
      view.setBigUint64(at + 8, BigInt(found.size), true);
      view.setBigUint64(at + 16, BigInt(Math.round(found.mtimeMs * 1000)), true);
      view.setBigUint64(at + 24, BigInt(Math.round(found.birthtimeMs * 1000)), true);
      view.setUint32(at + 32, found.nlink, true);
      view.setUint32(at + 36, found.ino, true);
    };
    const of = (p, n) => this.path(p, n);
    return {
      read_file: guard((p, n) => keep(fs.readFileSync(of(p, n)))),
      write_file: guard((p, n, at, len) => fs.writeFileSync(of(p, n), this.bytes(at, len))),
      append_file: guard((p, n, at, len) => fs.appendFileSync(of(p, n), this.bytes(at, len))),
      mkdir: guard((p, n, recursive) => void fs.mkdirSync(of(p, n), { recursive: !!recursive })),
      remove: guard((p, n, recursive) => {
        const name = of(p, n);
        if (recursive) fs.rmSync(name, { recursive: true });
        else if (fs.lstatSync(name).isDirectory()) fs.rmdirSync(name);
        else fs.unlinkSync(name);
      }),
      stat: guard((p, n, at) => {
        stat(new DataView(this.exports.memory.buffer), at, fs.lstatSync(of(p, n)));
      }),
      read_dir: guard((p, n) => {
        const directory = of(p, n);
        const parts = [];
        for (const name of fs.readdirSync(directory)) {
          const text = encoder.encode(name);
          const entry = new Uint8Array(4 + text.length + 40);
          const view = new DataView(entry.buffer);
          view.setUint32(0, text.length, true);
          entry.set(text, 4);
          stat(view, 4 + text.length, fs.lstatSync(path.join(directory, name)));
          parts.push(entry);
        }
        return keep(Buffer.concat(parts));
      }),
      rename: guard((p, n, q, m) => fs.renameSync(of(p, n), of(q, m))),
      copy: guard((p, n, q, m) => fs.copyFileSync(of(p, n), of(q, m))),
      symlink: guard((p, n, q, m) => fs.symlinkSync(decoder.decode(this.bytes(p, n)), of(q, m))),
      link: guard((p, n, q, m) => fs.linkSync(of(p, n), of(q, m))),
      read_link: guard((p, n) => keep(encoder.encode(fs.readlinkSync(of(p, n))))),
      chmod: guard((p, n, mode) => fs.chmodSync(of(p, n), mode)),
      set_modified_time: guard((p, n, us) => fs.utimesSync(of(p, n), us / 1e6, us / 1e6)),
      take: (at) => {
        this.bytes(at, this.kept.length).set(this.kept);
        this.kept = new Uint8Array();
      },
      write: (session, descriptor, at, len) =>
        this.output(session, descriptor, this.bytes(at, len).slice()),
      now_micros: () => Date.now() * 1000,
      grow: (pages) => this.exports.memory.grow(pages),
      random: (at, len) => void webcrypto.getRandomValues(this.bytes(at, len)),
    };
  }
}

/**
 * An instance of the module in `file` with the directories that scripts expect, and what it has
 * printed since the last time: what went to standard error in brackets.
 */
export function recorded(file) {
  const module = new WebAssembly.Module(fs.readFileSync(file));
  const root = fs.mkdtempSync(path.join(os.tmpdir(), "shell-"));
  for (const name of ["work", "tmp", "dev"]) fs.mkdirSync(path.join(root, name));
  let printed = "";
  const shell = new Shell(module, root, (_, descriptor, bytes) => {
    printed += descriptor === 1 ? Buffer.from(bytes) : `[${Buffer.from(bytes)}]`;
  });
  const output = () => {
    const text = printed;
    printed = "";
    return text;
  };
  return { shell, root, output };
}
