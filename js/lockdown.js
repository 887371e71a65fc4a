// Removes what deno_core put on the global object, once our modules have captured what they use,
// and what shares memory with threads: there are none, and with them one can build a precise clock.
// Nothing here is policy: the host decides what each op of ours may do.

const ENGINE = ["Deno", "__bootstrap", "__infra", "__timers"];
const THREADS = ["Atomics", "SharedArrayBuffer"];

for (const name of [...ENGINE, ...THREADS]) delete globalThis[name];
