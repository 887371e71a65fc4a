// Removes what deno_core put on the global object, once our modules have captured what they use.
// Nothing here is policy: the host decides what each op of ours may do.

for (const name of ["Deno", "__bootstrap", "__infra", "__timers"]) {
  delete globalThis[name];
}
