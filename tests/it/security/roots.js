// Collects what guest JavaScript comes by without naming it: constructors without a name, and the
// functions and receivers of stack frames, from inside every kind of call that isolet makes.

async () => {
  const roots = [
    ["%AsyncFunction%", (async () => {}).constructor],
    ["%GeneratorFunction%", (function* () {}).constructor],
    ["%AsyncGeneratorFunction%", (async function* () {}).constructor],
  ];

  function look(where) {
    const before = Error.prepareStackTrace;
    Error.stackTraceLimit = 100;
    Error.prepareStackTrace = (_, frames) => frames;
    const error = new Error();
    for (const frame of error.stack) {
      const file = frame.getFileName() ?? "no file";
      roots.push([`frame in ${where}, function of ${file}`, frame.getFunction()]);
      roots.push([`frame in ${where}, receiver of ${file}`, frame.getThis()]);
    }
    roots.push([`frame in ${where}`, error.stack[0]]);
    Error.prepareStackTrace = before;
  }
  const spy = (where) => ({ toString: () => (look(where), "x"), valueOf: () => (look(where), 1) });
  const thrown = (name, action) => {
    try {
      action();
    } catch (error) {
      roots.push([`error of ${name}`, error]);
    }
  };

  look("a call from Python");
  console.log(spy("console.log"));
  new TextEncoder().encode(spy("TextEncoder"));
  thrown("TextDecoder", () => new TextDecoder(spy("TextDecoder")));
  thrown("WebAssembly.Module", () => new WebAssembly.Module(new Uint8Array(8)));
  thrown("getRandomValues", () => crypto.getRandomValues({ buffer: 1, byteLength: 1 }));
  new WebAssembly.Memory({ initial: spy("WebAssembly.Memory") });
  await import("x").catch((error) => roots.push(["error of import", error]));
  await fetch("http://canary.invalid/").catch((error) => roots.push(["error of fetch", error]));
  await new Promise((resolve) => setTimeout(() => (look("a timer"), resolve())));
  await new Promise((resolve) => {
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = () => (look("a message"), resolve());
    port2.postMessage(0);
  });
  await Promise.resolve().then(() => look("a promise's job"));
  const controller = new AbortController();
  controller.signal.addEventListener("abort", () => look("an abort"));
  controller.abort();
  return roots;
}
