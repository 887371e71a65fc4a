// A short way for most of what a guest prints. `print` writes each text and each line break on its
// own, and each time CPython's `TextIOWrapper` calls a file, which calls Emscripten's file system.
// So both output streams get a `write` of their own: a function of C by its looks, whose code is
// here. It hands short ASCII texts to the host where they are, as long as stream and file are as
// they were made. And the code of `print` is here, too: it hands over a line at once where `print`
// gets one such text. All else goes to CPython's code, which `linking.js` calls: code of the guest
// may run there and wait, which it cannot while a function of JavaScript has called it.

import { primordials } from "ext:core/mod.js";
import { DictEntry } from "ext:isolet/dict_entry.js";
import { exportedFunction, functionNames } from "ext:isolet/linking.js";
import { op_isolet_write_line, op_isolet_write_part } from "ext:core/ops";

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

const { Global, Memory } = WebAssembly;
const bufferOf = uncurryThis(ObjectGetOwnPropertyDescriptor(Memory.prototype, "buffer").get);

// Where CPython 3.14 has what of its objects, in words.

const TYPE = 1;
const TEXT = { __proto__: null, length: 2, state: 4, data: 5 };
const INTEGER_WORDS = 4;
const DESCRIPTOR_METHOD = 5;
const FUNCTION_DEFINITION = 2;
const METHOD = { __proto__: null, code: 1, flags: 2, words: 4 };
const FILE_NUMBER = 2;
/** Fewer references than `None` has, which is never freed. */
const IMMORTAL = 0x20000000;
/**
 * The part of a `TextIOWrapper` that says how it writes, and what it has not written yet; and its
 * dict, which is always the same.
 */
const STREAM = { __proto__: null, start: 2, buffer: 5, end: 22, attributes: 26 };

/** The bits of a text's state that say how its characters are kept, and for ASCII. */
const STATE_BITS = 0x7c;
const STATE_ASCII = 0x64;

/** The flags of a method with one argument, and of one with an array of them, some with names. */
const METH_O = 8;
const METH_FASTCALL_KEYWORDS = 0x82;

/** The most characters: Python has the integers up to this one ready, which are the results. */
const LONGEST = 256;
/** The same for a line, of which a copy is made. */
const LONGEST_LINE = 4096;

const NAME = "write";

export class TextOutput {
  /** What the image keeps. */
  kept;
  /** `TextIOWrapper.write` and `print`, as `linking.js` takes them. */
  choices;
  #memory;
  /** Views of the memory, which are empty once it has grown. @type {any} */
  #words = [];
  #bytes;
  /** Those whose `write` is here, each with its file in Emscripten. */
  #streams = [];
  /** `sys.stdout`. */
  #stdout;

  constructor(kept) {
    this.kept = kept;
    // All but a count are addresses.
    const write = (stream, text) => this.#write(stream, text);
    write.sig = "iii";
    const print = (_module, values, count, names) => this.#print(values, count, names);
    print.sig = "iiiii";
    const place = () => new Global({ __proto__: null, value: "i32", mutable: true }, 0);
    this.choices = [{ run: write, otherwise: place() }, { run: print, otherwise: place() }];
    if (kept !== null) this.#place();
  }

  /**
   * Gives streams their `write`, and `print` its code, while the image is made. All are addresses,
   * but for the number of a stream's file.
   */
  install(memory, exports, linking, { streams, ...places }) {
    this.#memory = memory;
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
    this.#words[ours + METHOD.code] = linking.choicesPlace;
    this.#words[ours + METHOD.flags] = METH_O;
    this.#words[ours + METHOD.words - 1] = 0;
    for (let i = 0; i < streams.length; i++) {
      const { stream } = streams[i];
      const made = call("PyCMethod_New", definition, stream, 0, 0);
      if (made === 0 || call("PyObject_SetAttrString", stream, name, made) !== 0) {
        throw new Error("a stream takes no method");
      }
      call("Py_DecRef", made);
      streams[i].write = made;
    }
    this.#renew();
    this.kept = this.#checked(places, streams);
    this.#words[this.kept.print + METHOD.code] = linking.choicesPlace + 1;
    this.#place();
  }

  /** Uses what the image keeps, when all files are open. */
  attach(memory, FS) {
    const { streams, system, stdoutName, sample } = this.kept;
    this.#memory = memory;
    this.#renew();
    for (let i = 0; i < streams.length; i++) {
      const { stream, file, number, settings, attributes, write } = streams[i];
      const opened = FS.streams[number];
      const attribute = new DictEntry(attributes, sample);
      const own = {
        __proto__: null, stream, file, number, settings, attribute, write, FS, opened,
      };
      ArrayPrototypePush(this.#streams, own);
    }
    this.#stdout = new DictEntry(system, stdoutName);
  }

  /** Says where CPython's code is. */
  #place() {
    const [write, print] = this.choices;
    write.otherwise.value = this.kept.writeCode;
    print.otherwise.value = this.kept.printCode;
  }

  #renew() {
    const buffer = bufferOf(this.#memory);
    this.#words = new Uint32Array(buffer);
    this.#bytes = new Uint8Array(buffer);
  }

  /** Makes sure that this CPython has everything where it is looked for. */
  #checked(places, streams) {
    const { text, sample, zero, last, none, method, print, system, stdoutName, stdout } = places;
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
    check("`None`", words[none >>> 2] > IMMORTAL);
    const definition = words[(method >>> 2) + DESCRIPTOR_METHOD] >>> 2;
    check("a method", words[definition + METHOD.flags] === METH_O);
    const writeCode = words[definition + METHOD.code];
    const function_ = words[(print >>> 2) + FUNCTION_DEFINITION] >>> 2;
    check("`print`", words[function_ + METHOD.flags] === METH_FASTCALL_KEYWORDS);
    const printCode = words[function_ + METHOD.code];
    new DictEntry(system, stdoutName).check(words, stdout);
    const kept = [];
    for (let i = 0; i < streams.length; i++) {
      const { stream, file, number, attributes, write } = streams[i];
      const start = stream >>> 2;
      check("the file of a stream", words[start + STREAM.buffer] === file);
      check("the number of a file", words[(file >>> 2) + FILE_NUMBER] === number);
      check("the dict of a stream", words[start + STREAM.attributes] === attributes);
      new DictEntry(attributes, sample).check(words, write);
      const settings = [];
      for (let j = STREAM.start; j < STREAM.end; j++) {
        ArrayPrototypePush(settings, words[start + j]);
      }
      ArrayPrototypePush(kept, { stream, file, number, settings, attributes, write });
    }
    const kinds = { text, sample, zero, none };
    const codes = { writeCode, print: function_, printCode };
    return { ...kinds, ...codes, system, stdoutName, streams: kept };
  }

  /** The number of characters that were written, as Python's; 0 if it was none. */
  #write(stream, text) {
    if (this.#words[0] === undefined) this.#renew();
    const length = this.#asciiLength(text);
    if (length >= 0 && length <= LONGEST) {
      const own = this.#plain(stream);
      if (own !== null) {
        op_isolet_write_part(own.number, this.#bytes, (text >>> 0) + 4 * TEXT.data, length);
        return this.kept.zero + 4 * INTEGER_WORDS * length;
      }
    }
    return 0;
  }

  /** `None`; 0 if no line was written. */
  #print(values, count, names) {
    if (this.#words[0] === undefined) this.#renew();
    if (names === 0 && count === 1) {
      const text = this.#words[values >>> 2];
      const length = this.#asciiLength(text);
      if (length >= 0 && length <= LONGEST_LINE) {
        const own = this.#plainStdout();
        if (own !== null) {
          op_isolet_write_line(own.number, this.#bytes, text + 4 * TEXT.data, length);
          return this.kept.none;
        }
      }
    }
    return 0;
  }

  /** The length of a text whose characters are all ASCII and follow it; -1 for all else. */
  #asciiLength(text) {
    const words = this.#words;
    const at = text >>> 2;
    const isAscii = words[at + TYPE] === this.kept.text &&
      (words[at + TEXT.state] & STATE_BITS) === STATE_ASCII;
    return isAscii ? words[at + TEXT.length] : -1;
  }

  /** What `sys.stdout` is, if that is a stream with our `write`, and all is as it was made. */
  #plainStdout() {
    const words = this.#words;
    const own = this.#streams[0];
    const isThere = this.#stdout.has(words, own.stream) && own.attribute.has(words, own.write);
    return isThere ? this.#plain(own.stream) : null;
  }

  /** What this stream is, if it and its file are as they were made. */
  #plain(stream) {
    const words = this.#words;
    const streams = this.#streams;
    for (let i = 0; i < streams.length; i++) {
      const own = streams[i];
      if (own.stream !== stream) continue;
      const { number, settings, FS } = own;
      const start = (stream >>> 2) + STREAM.start;
      for (let j = 0; j < settings.length; j++) {
        if (words[start + j] !== settings[j]) return null;
      }
      const isOpen = words[(own.file >>> 2) + FILE_NUMBER] === number;
      return isOpen && FS.streams[number] === own.opened ? own : null;
    }
    return null;
  }
}
