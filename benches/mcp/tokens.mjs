// Counts the tokens of texts: a list in JSON on standard input, a list of numbers on standard
// output. The tokenizer is gpt-tokenizer from npm, with the vocabulary o200k_base.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

// Where it is installed is the caller's to say: this file is not beside it.
const require = createRequire(`${process.env.ISOLET_BENCH_NODE}/`);
const { countTokens } = require("gpt-tokenizer/encoding/o200k_base");

const texts = JSON.parse(readFileSync(0, "utf8"));
console.log(JSON.stringify(texts.map((text) => countTokens(text))));
