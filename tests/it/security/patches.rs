//! A hostile guest's replacements of JavaScript's built-ins, each with its goal.

/// A name and a script. The test defines the function `redirect`, which changes an array of
/// arguments.
pub(crate) const PATCHES: &[(&str, &str)] = &[
    ("toJSON", "Object.prototype.toJSON = () => ({ name: 'rob', amount: 9 })"),
    ("JSON", "JSON.stringify = () => '\"rob\"'; JSON.parse = () => ({ name: 'rob' })"),
    ("apply", "const apply = Function.prototype.apply;
        const redirected = function (self, args) { return Reflect.apply(this, self, redirect(args)) };
        redirected.apply = function (f, [self, args]) { return Reflect.apply(f, self, redirect(args)) };
        Function.prototype.apply = redirected"),
    ("call and bind", "Function.prototype.call = Function.prototype.bind = function () { return () => 9 }"),
    ("push", "const push = Array.prototype.push;
        Array.prototype.push = function (...a) { const n = Reflect.apply(push, this, a); redirect(this); return n }"),
    ("element setters", "for (let i = 0; i < 8; i++) Object.defineProperty(Array.prototype, i, {
        set(value) { Object.defineProperty(this, i, { value, writable: true, configurable: true }); redirect(this) } })"),
    ("a prototype of arrays", "Object.setPrototypeOf(Array.prototype, new Proxy({}, {
        set(t, k, value, self) {
            const made = Reflect.defineProperty(self, k, { value, writable: true, configurable: true });
            redirect(self); return made },
        has: () => false }))"),
    ("TextDecoder", "const decode = TextDecoder.prototype.decode; TextDecoder.prototype.decode =
        function (bytes) { return Reflect.apply(decode, this, [bytes]).replaceAll('pay', 'rob') }"),
    ("TextEncoder", "TextEncoder.prototype.encodeInto = () => ({ read: 0, written: 0 })"),
    ("strings", "String.fromCharCode = String.fromCodePoint = () => 'rob';
        String.prototype.toString = () => 'rob'"),
    ("then", "const then = Promise.prototype.then; Promise.prototype.then =
        function (a, b) { return Reflect.apply(then, this, [(v) => a?.(9), b]) }"),
    ("Promise", "Promise.race = Promise.resolve = Promise.all = async () => 9; globalThis.Promise = class {}"),
    ("species", "Object.defineProperty(Promise, Symbol.species, { get: () => function (e) { e(() => 9, () => 9) } })"),
    ("constructor", "Object.defineProperty(Promise.prototype, 'constructor', { get() { return Object } })"),
    ("iterators", "Array.prototype[Symbol.iterator] = Set.prototype[Symbol.iterator] = function* () { yield 'rob' };
        Object.getPrototypeOf([][Symbol.iterator]()).next = () => ({ done: true })"),
    ("collections", "Map.prototype.get = Map.prototype.set = Set.prototype.add = Set.prototype.has = () => 9"),
    ("Reflect", "Reflect.apply = (f, s, a) => f(...redirect(a)); Reflect.construct = () => 9"),
    ("Object", "Object.defineProperty = Object.freeze = Object.assign = Object.keys = () => 9"),
    ("descriptors", "Object.prototype.get = () => 9; Object.prototype.value = 9; Object.prototype.writable = true"),
    ("setters of every object", "for (const n of ['name', 'tool', 'call', 'then', 'end', 'next', 'done'])
        Object.defineProperty(Object.prototype, n, { set() {}, get() { return undefined }, configurable: true })"),
    ("then of every object", "Object.prototype.then = function (resolve) { resolve(9) }"),
    ("views", "Uint8Array.prototype.subarray = Uint8Array.prototype.slice = () => new Uint8Array(8);
        Object.defineProperty(Object.getPrototypeOf(Uint8Array.prototype), 'length', { get: () => 3 });
        globalThis.Uint8Array = function () { return [] }"),
    ("buffers", "Object.defineProperty(WebAssembly.Memory.prototype, 'buffer', { get: () => new ArrayBuffer(1 << 25) });
        Object.defineProperty(ArrayBuffer.prototype, 'byteLength', { get: () => 9 })"),
    ("the module's memory", "pyodide_js._module.HEAPU8 = new Uint8Array(1 << 25)"),
    ("numbers", "Number.isSafeInteger = Number.isInteger = () => false; Number.prototype.valueOf = () => 9;
        globalThis.Number = globalThis.BigInt = () => 9"),
    ("errors", "globalThis.Error = class { constructor() { return {} } }; Error.captureStackTrace = () => { throw 9 }"),
    ("timers", "globalThis.setTimeout = globalThis.clearTimeout = globalThis.queueMicrotask = () => 9"),
    ("WebAssembly", "globalThis.WebAssembly = {}"),
    ("the globals", "for (const n of Object.getOwnPropertyNames(globalThis)) delete globalThis[n]"),
];
