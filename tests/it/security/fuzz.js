// Calls every function of isolet's with every odd value in every place, and prints how many calls
// it made.

async (...bridge) => {
  const detached = new Uint8Array(16);
  detached.buffer.transfer();
  const fleeting = new Uint8Array(8);
  const odd = [
    undefined, null, true, -1, 0, 1, 2, 3.5, NaN, Infinity, -Infinity, 2 ** 24, 2 ** 31, -(2 ** 31), 2 ** 32, 2 ** 53,
    10n, -1n, 2n ** 64n, "", "pay", "\ud800", "__proto__", "x".repeat(100_000), Symbol("x"), Symbol.iterator,
    [], [1], [[]], {}, { length: -1 }, Object.create(null), () => 1, function () {}, class {}, /x/, new Date(NaN),
    new ArrayBuffer(0), new ArrayBuffer(8), new Uint8Array(8), new Float64Array(2), new DataView(new ArrayBuffer(4)),
    new BigInt64Array(1), detached, detached.buffer, fleeting, new WebAssembly.Memory({ initial: 0 }),
    new Map(), new WeakRef({}), Promise.resolve(1), new Proxy({}, {}), new Proxy(() => 1, {}),
    { get length() { throw new Error("length") } },
    { valueOf() { fleeting.buffer.transfer(); return 1 }, toString() { fleeting.buffer.transfer(); return "x" } },
    { [Symbol.toPrimitive]() { throw new Error("primitive") } },
    { get buffer() { return detached.buffer }, byteOffset: -1, byteLength: 1e9 },
    { get url() { return { toString: () => "http://127.0.0.1:1/" } } },
    { then(resolve) { resolve(1) } },
    new Proxy({}, { get() { throw new Error("get") }, has() { throw new Error("has") } }),
  ];
  const encoder = new TextEncoder();
  const decoders = ["utf-8", "utf-16le", "latin1"].map((name) => new TextDecoder(name, { fatal: true }));
  const functions = [
    ...bridge, ...Object.values(console), performance.now, crypto.getRandomValues,
    (x) => encoder.encode(x), (x, y) => encoder.encodeInto(x, y), (x, y) => new TextDecoder(x, y),
    ...decoders.map((decoder) => (x) => decoder.decode(x)),
    (x, y) => new WebAssembly.Module(x, y), WebAssembly.compile, WebAssembly.instantiate,
    (x) => new WebAssembly.Memory(x), (x, y) => setTimeout(x, y), clearTimeout, queueMicrotask,
    fetch, (x, y) => new Request(x, y), (x) => new Headers(x),
  ];
  let calls = 0;
  const attempt = (call, args) => {
    calls++;
    try {
      const result = call(...args);
      if (result instanceof Promise) result.then(() => {}, () => {});
    } catch {
      // An exception is what it should be.
    }
  };
  for (const call of functions) {
    for (const a of odd) {
      attempt(call, [a]);
      for (const b of [undefined, -1, 2 ** 32, "x", {}, new Uint8Array(8), detached]) {
        attempt(call, [a, b]);
        attempt(call, [b, a]);
        attempt(call, [1, a, b]);
        attempt(call, [a, 1, b, 1]);
      }
    }
  }
  console.log(`\nmade ${calls} calls`);
}
