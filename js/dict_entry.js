// An entry of a Python dict, found in the interpreter's memory: whether it has a certain value is
// known then without a call of CPython.

import { primordials } from "ext:core/mod.js";

const { Error } = primordials;

// Where CPython 3.14 has what of a dict, and of its keys, in words.

const KEYS = 6;
const VALUES = 7;
const SIZES = 1;
const ENTRY_COUNT = 4;
const HEAD_WORDS = 5;
/** An entry is a key and a value. */
const ENTRY_WORDS = 2;

/** What of the word with the sizes says where the entries are, and what they are. */
const SIZES_BITS = 0xffffff;
/** The kind of a dict all of whose keys are texts, in that word. */
const TEXT_KEYS = 1;

/** The most entries that are looked through. */
const MOST_ENTRIES = 4096;

export class DictEntry {
  #dict;
  #name;
  /** What the dict had when the entry was found, and which one it is. */
  #keys = 0;
  #sizes = 0;
  #number = -1;

  /** `name` is the key's address, which is an interned text. */
  constructor(dict, name) {
    this.#dict = dict >>> 2;
    this.#name = name;
  }

  /** Makes sure that this CPython has dicts as expected, with one that has this value. */
  check(words, value) {
    if (words[this.#dict + VALUES] !== 0 || !this.has(words, value)) {
      throw new Error("an entry of a dict of this CPython is not where it is expected");
    }
  }

  /** Whether the entry is there and has this value. */
  has(words, value) {
    const keys = words[this.#dict + KEYS] >>> 2;
    const sizes = words[keys + SIZES] & SIZES_BITS;
    if (keys !== this.#keys || sizes !== this.#sizes) this.#find(words, keys, sizes);
    const number = this.#number;
    if (number < 0 || number >= words[keys + ENTRY_COUNT]) return false;
    const at = keys + HEAD_WORDS + (1 << (sizes >>> 8 & 0xff) >>> 2) + number * ENTRY_WORDS;
    return words[at] === this.#name && words[at + 1] === value;
  }

  #find(words, keys, sizes) {
    this.#keys = keys;
    this.#sizes = sizes;
    this.#number = -1;
    if (sizes >>> 16 !== TEXT_KEYS) return;
    const count = words[keys + ENTRY_COUNT];
    const first = keys + HEAD_WORDS + (1 << (sizes >>> 8 & 0xff) >>> 2);
    for (let i = 0; i < count && i < MOST_ENTRIES; i++) {
      if (words[first + i * ENTRY_WORDS] !== this.#name) continue;
      this.#number = i;
      return;
    }
  }
}
