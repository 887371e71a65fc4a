// Values in JSON: what a node gets and gives is exact.

import assert from "node:assert/strict";
import { test } from "node:test";

import { ProtocolError, TransferError } from "../src/index.js";
import { decodeJson, encodeJson } from "../src/json.js";

const read = (json: string) => decodeJson(Buffer.from(json));

test("what is written is read as it was", () => {
  const own: Record<string, unknown> = {};
  Object.defineProperty(own, "__proto__", { value: 1, enumerable: true });
  for (const value of [
    null,
    true,
    0,
    -1,
    0.1,
    5e-324,
    1e300,
    -0,
    Infinity,
    NaN,
    Number.MAX_SAFE_INTEGER,
    2n ** 53n,
    -(2n ** 300n),
    "",
    'é\u{1f600}\0"\\\u2028',
    new Uint8Array([0, 255]),
    [],
    [[1], [2n ** 64n, "a, ]}"]],
    {},
    { a: { b: null }, c: [2n ** 70n] },
    { $bytes: "AA==" },
    { $float: "nan", and: "more" },
    { $dict: [] },
    own,
    new Map<unknown, unknown>([[1, "a"], [null, new Map([[2, 3]])]]),
  ]) {
    assert.deepEqual(read(encodeJson(value, "value")), value);
  }
});

test("a large number stays a float, and an integer an integer", () => {
  assert.equal(encodeJson(2 ** 64, "value"), "18446744073709552000.0");
  assert.equal(encodeJson(2n ** 64n, "value"), "18446744073709551616");
  assert.equal(read("18446744073709552000.0"), 2 ** 64);
  assert.equal(read("1e22"), 1e22);
  assert.deepEqual(read('{"n":[-9007199254740993,1.00000000000000001]}'), {
    n: [-9007199254740993n, 1],
  });
  assert.equal(read(" 9007199254740991 "), Number.MAX_SAFE_INTEGER);
});

test("what is undefined is left out, and a map of texts comes back as an object", () => {
  assert.equal(encodeJson({ a: undefined, b: [undefined] }, "value"), '{"b":[null]}');
  assert.deepEqual(read(encodeJson(new Map([["a", 1], ["$b", 2]]), "value")), { a: 1, $b: 2 });
});

test("what cannot cross is refused by its place", () => {
  const loop: unknown[] = [];
  loop.push(loop);
  for (const [value, place] of [
    [{ a: [new Date()] }, /`value\["a"\]\[0\]` is an object of the class Date/],
    [new Map([["k", Symbol("s")]]), /`value\["k"\]` is a symbol/],
    ["\ud800", /half of a surrogate pair/],
    [loop, /nested deeper than 200/],
  ] as const) {
    assert.throws(() => encodeJson(value, "value"), (error: Error) => {
      assert.ok(error instanceof TransferError);
      assert.match(error.message, place);
      return true;
    });
  }
});

test("what is no JSON is refused, however it is read", () => {
  const long = "12345678901234567";
  for (const json of ["", "{", "[1,]", "nul", '"a', "1 2", '{"a" 1}', "01", "[1}", '"\\x"', "-"]) {
    assert.throws(() => read(json), ProtocolError, json);
    assert.throws(() => read(`[${long},${json}]`), ProtocolError, `exactly: ${json}`);
  }
  assert.throws(() => read('{"$float":"none"}'), ProtocolError);
  assert.throws(() => read("1".repeat(200_000)), /200000 digits: limit 100000/);
  assert.throws(() => read(`${"[".repeat(10_000)}${long}`), /nested too deep/);
});
