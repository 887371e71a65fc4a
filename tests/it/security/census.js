// Walks everything that guest JavaScript can reach, from named roots, and lists what is not the
// language's own JavaScript. It calls no getter and no function that it finds. `isolet` and
// `others` are the texts of files, by which their functions are known: isolet's; Pyodide's and the
// census's.

(roots, isProxy, isolet, others) => {
  const native = /^[^{]*\) \{ \[native code\] \}$/;
  const textOf = Function.prototype.toString;
  const table = new WebAssembly.Table({ element: "anyfunc", initial: 1 });

  const ways = new Map(); // everything seen so far, and the first way to it
  const natives = new Map(); // the way to an object, and the names of its native functions
  const ours = new Set();
  const strange = new Set();
  const queue = [];

  function isFromWasm(value) {
    try {
      table.set(0, value);
      return true;
    } catch {
      return false;
    }
  }

  function classify(value, holder, name, way) {
    const text = Reflect.apply(textOf, value, []);
    if (isFromWasm(value)) return;
    if (native.test(text)) {
      if (!natives.has(holder)) natives.set(holder, []);
      natives.get(holder).push(value.name && value.name !== name ? `${name}=${value.name}` : name);
    } else if (isolet.includes(text)) {
      ours.add(way);
    } else if (!others.includes(text)) {
      strange.add(way);
    }
  }

  function see(value, holder, name) {
    const kind = typeof value;
    if (value === null || (kind !== "object" && kind !== "function") || ways.has(value)) return;
    // Which element it is does not matter, and changes.
    const element = /^\d+$/.test(name) ? "[]" : name;
    const way = holder === "" ? name : `${holder}.${element}`;
    ways.set(value, way);
    if (kind === "function") classify(value, holder, name, way);
    queue.push(value);
  }

  function membersOf(value) {
    for (const kind of [Map, Set]) {
      try {
        return [...Reflect.apply(kind.prototype.entries, value, [])].flat();
      } catch {
        // It is not of this kind.
      }
    }
    return [];
  }

  function walk() {
    for (let value = queue.shift(); value !== undefined; value = queue.shift()) {
      if (isProxy(value)) continue;
      const way = ways.get(value);
      see(Reflect.getPrototypeOf(value), way, "[[Prototype]]");
      // The elements of the memory are numbers, and many.
      for (const key of ArrayBuffer.isView(value) ? [] : Reflect.ownKeys(value)) {
        const name = typeof key === "symbol" ? `[${key.description}]` : key;
        const descriptor = Reflect.getOwnPropertyDescriptor(value, key);
        see(descriptor?.value, way, name);
        see(descriptor?.get, way, `get ${name}`);
        see(descriptor?.set, way, `set ${name}`);
      }
      for (const member of membersOf(value)) see(member, way, "[member]");
    }
  }

  const globals = Reflect.ownKeys(globalThis).map(String).sort();
  ways.set(globalThis, "");
  queue.push(globalThis);
  walk();
  for (const [name, root] of roots) {
    see(root, "", name);
    walk();
  }

  const lines = [];
  const section = (title, entries) => lines.push(`# ${title}`, "", ...entries, "");
  section("Names on the global object", globals);
  section(
    "Native functions, after the object that each was first found on",
    [...natives].map(([way, names]) => `${way || "globalThis"}: ${names.sort().join(" ")}`).sort(),
  );
  section("Functions of isolet's own files", [...ours].sort());
  section("Functions that are neither these, nor Pyodide's, nor WebAssembly's", [...strange].sort());
  return lines.join("\n");
}
