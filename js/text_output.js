// A short way for most of what a guest prints. `print` writes each text and each line break on its
// own, and each time CPython's `TextIOWrapper` calls a file, which calls Emscripten's file system.
// So both output streams get a `write` of their own: a function of C by its looks, whose code is
// here. It hands short ASCII texts to the host where they are, as long as stream and file are as
// they were made. All else goes to `TextIOWrapper.write`.

import { primordials } from "ext:core/mod.js";
import { exportedFunction, functionNames } from "ext:isolet/linking.js";
import { op_isolet_write_part } from "ext:core/ops";

const {
  ArrayPrototypeIndexOf,
  ArrayPrototypePush,
  Error,
  ObjectGetOwnPropertyDescriptor,
  StringPrototypeCharCodeAt,
  Uint32Array,
  Uint8Array,
  uncurryThis,
} = primordials;

const { Memory, Table } = WebAssembly;
const functionAt = uncurryThis(Table.prototype.get);
const bufferOf = uncurryThis(ObjectGetOwnPropertyDescriptor(Memory.prototype, "buffer").get);

// Where CPython 3.14 has what of its objects, in words.

const TYPE = 1;
const TEXT = { __proto__: null, length: 2, state: 4, data: 5 };
const INTEGER_WORDS = 4;
const DESCRIPTOR_METHOD = 5;
const METHOD = { __proto__: null, code: 1, flags: 2, words: 4 };
const FILE_NUMBER = 2;
/** The part of a `TextIOWrapper` that says how it writes, and what it has not written yet. */
const STREAM = { __proto__: null, start: 2, buffer: 5, end: 22 };

/** The bits of a text's state that say how its characters are kept, and for ASCII. */
const STATE_BITS = 0x7c;
const STATE_ASCII = 0x64;

/** The flag of a method with one argument. */
const METH_O = 8;

/** The most characters: Python has the integers up to this one ready, which are the results. */
const LONGEST = 256;

const NAME = "write";

export class TextOutput {
  /** What the image keeps. */
  kept;
  /** `TextIOWrapper.write`, for the table: both arguments and the result are addresses. */
  write;
  #table;
  #memory;
  /** Views of the memory, which are empty once it has grown. */
  #words = [];
  #bytes;
  /** Those whose `write` is here, each with its file in Emscripten. */
  #streams = [];

  constructor(kept) {
    this.kept = kept;
    this.write = (stream, text) => this.#write(stream, text);
    this.write.sig = "iii";
  }

  /**
   * Gives streams their `write` while the image is made. The places are of the type of texts, of
   * the text "write", of the integers 0 and 256, of `TextIOWrapper.write`, and for each stream its
   * own, that of its file, and the file's number.
   */
  install(memory, exports, linking, [text, sample, zero, last, method, ...places]) {
    this.#memory = memory;
    this.#table = linking.table;
    this.#renew();
    const streams = [];
    for (let i = 0; i < places.length; i += 3) {
      streams[i / 3] = { stream: places[i], file: places[i + 1], number: places[i + 2] };
    }
    const names = functionNames();
    const call = (name, ...values) => {
      const index = ArrayPrototypeIndexOf(names, name);
      if (index < 0) throw new Error(`CPython exports no ${name}`);
      return exportedFunction(exports, index)(...values);
    };
    const definition = call("malloc", 4 * METHOD.words + NAME.length + 1);
    const name = definition + 4 * METHOD.words;
    this.#renew();
    for (let i = 0; i < NAME.length; i++) {
      this.#bytes[name + i] = StringPrototypeCharCodeAt(NAME, i);
    }
    this.#bytes[name + NAME.length] = 0;
    const ours = definition >>> 2;
    this.#words[ours] = name;
    this.#words[ours + METHOD.code] = linking.addedPlace;
    this.#words[ours + METHOD.flags] = METH_O;
    this.#words[ours + METHOD.words - 1] = 0;
    for (let i = 0; i < streams.length; i++) {
      const { stream } = streams[i];
      const made = call("PyCMethod_New", definition, stream, 0, 0);
      if (made === 0 || call("PyObject_SetAttrString", stream, name, made) !== 0) {
        throw new Error("a stream takes no method");
      }
      call("Py_DecRef", made);
    }
    this.#renew();
    this.kept = this.#checked({ text, sample, zero, last, method, streams });
  }

  /** Uses what the image keeps, when all files are open. */
  attach(memory, FS, table) {
    this.#memory = memory;
    this.#table = table;
    this.#renew();
    for (let i = 0; i < this.kept.streams.length; i++) {
      const { stream, file, number, settings } = this.kept.streams[i];
      const opened = FS.streams[number];
      const own = { __proto__: null, stream, file, number, settings, FS, opened };
      ArrayPrototypePush(this.#streams, own);
    }
  }

  #renew() {
    const buffer = bufferOf(this.#memory);
    this.#words = new Uint32Array(buffer);
    this.#bytes = new Uint8Array(buffer);
  }

  /** Makes sure that this CPython has everything where it is looked for. */
  #checked({ text, sample, zero, last, method, streams }) {
    const words = this.#words;
    const check = (what, is) => {
      if (!is) throw new Error(`${what} of this CPython is not where it is expected`);
    };
    const at = sample >>> 2;
    check("the type of a text", words[at + TYPE] === text);
    check("the length of a text", words[at + TEXT.length] === NAME.length);
    check("the state of a text", (words[at + TEXT.state] & STATE_BITS) === STATE_ASCII);
    for (let i = 0; i < NAME.length; i++) {
      const found = this.#bytes[sample + 4 * TEXT.data + i];
      check("the data of a text", found === StringPrototypeCharCodeAt(NAME, i));
    }
    check("an integer", last - zero === 4 * INTEGER_WORDS * LONGEST);
    const definition = words[(method >>> 2) + DESCRIPTOR_METHOD] >>> 2;
    check("a method", words[definition + METHOD.flags] === METH_O);
    const code = words[definition + METHOD.code];
    const kept = [];
    for (let i = 0; i < streams.length; i++) {
      const { stream, file, number } = streams[i];
      const start = stream >>> 2;
      check("the file of a stream", words[start + STREAM.buffer] === file);
      check("the number of a file", words[(file >>> 2) + FILE_NUMBER] === number);
      const settings = [];
      for (let j = STREAM.start; j < STREAM.end; j++) {
        ArrayPrototypePush(settings, words[start + j]);
      }
      ArrayPrototypePush(kept, { stream, file, number, settings });
    }
    return { text, zero, code, streams: kept };
  }

  #write(stream, text) {
    if (this.#words[0] === undefined) this.#renew();
    const words = this.#words;
    const at = text >>> 2;
    const length = words[at + TEXT.length];
    if (
      length <= LONGEST &&
      words[at + TYPE] === this.kept.text &&
      (words[at + TEXT.state] & STATE_BITS) === STATE_ASCII
    ) {
      const number = this.#plain(stream);
      if (number !== 0) {
        const data = (text >>> 0) + 4 * TEXT.data;
        op_isolet_write_part(number, this.#bytes, data, length);
        return this.kept.zero + 4 * INTEGER_WORDS * length;
      }
    }
    return functionAt(this.#table, this.kept.code)(stream, text);
  }

  /** The number of the stream's file, if both are as they were made; 0 otherwise. */
  #plain(stream) {
    const words = this.#words;
    const streams = this.#streams;
    for (let i = 0; i < streams.length; i++) {
      const own = streams[i];
      if (own.stream !== stream) continue;
      const { number, settings, FS } = own;
      const start = (stream >>> 2) + STREAM.start;
      for (let j = 0; j < settings.length; j++) {
        if (words[start + j] !== settings[j]) return 0;
      }
      const isOpen = words[(own.file >>> 2) + FILE_NUMBER] === number;
      return isOpen && FS.streams[number] === own.opened ? number : 0;
    }
    return 0;
  }
}
