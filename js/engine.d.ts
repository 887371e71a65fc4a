// What the engine has besides the language: deno_core's `core` and `primordials`, and V8's own.

/** A method as a function that takes the object first. */
type Uncurried<T, F> = F extends (...args: infer A) => infer R ? (self: T, ...args: A) => R : never;

/** The static members of a built-in: `ObjectKeys`. */
type Statics<Name extends string, Class> = {
  [Key in keyof Class & string as `${Name}${Capitalize<Key>}`]: Class[Key];
};

/** The methods of a built-in, `ArrayPrototypePush`, and its getters, `MapPrototypeGetSize`. */
type Methods<Name extends string, T> = {
  [Key in keyof T & string as `${Name}Prototype${Capitalize<Key>}`]: Uncurried<T, T[Key]>;
} & {
  [Key in keyof T & string as `${Name}PrototypeGet${Capitalize<Key>}`]: (self: T) => T[Key];
};

/** A property as TypeScript has it, but without a prototype, as ours are made. */
type Descriptor = PropertyDescriptor & { __proto__?: null };

/** What is declared otherwise: what we look for is there, and objects have no prototype. */
type Replaced = {
  ObjectDefineProperty(target: object, key: PropertyKey, descriptor: Descriptor): any;
  ObjectGetOwnPropertyDescriptor(target: object, key: PropertyKey): any;
  ObjectPrototypeIsPrototypeOf(self: object, of: unknown): boolean;
  ReflectDefineProperty(target: object, key: PropertyKey, descriptor: Descriptor): boolean;
};

type BuiltIns = Methods<"Array", any[]> &
  Methods<"ArrayBuffer", ArrayBuffer> &
  Methods<"DataView", DataView> &
  Methods<"Object", object> &
  Methods<"Promise", Promise<any>> &
  Methods<"String", string> &
  Methods<"TypedArray", Uint8Array> &
  Statics<"ArrayBuffer", ArrayBufferConstructor> &
  Statics<"BigInt", BigIntConstructor> &
  Statics<"Date", DateConstructor> &
  Statics<"JSON", JSON> &
  Statics<"Math", Math> &
  Statics<"Object", ObjectConstructor> &
  Statics<"Promise", PromiseConstructor> &
  Statics<"Reflect", typeof Reflect> &
  Statics<"Symbol", SymbolConstructor>;

declare module "ext:core/mod.js" {
  /** The language's built-ins as they were before a guest could replace them. */
  export const primordials: Omit<BuiltIns, keyof Replaced> & Replaced & {
    ArrayPrototype: any[];
    BigInt: BigIntConstructor;
    DataView: DataViewConstructor;
    Error: ErrorConstructor;
    ErrorPrototype: Error;
    FinalizationRegistry: FinalizationRegistryConstructor;
    Number: NumberConstructor;
    ObjectPrototype: object;
    Promise: PromiseConstructor;
    RangeError: RangeErrorConstructor;
    RangeErrorPrototype: RangeError;
    SafeMap: MapConstructor;
    SafeSet: SetConstructor;
    String: StringConstructor;
    Symbol: SymbolConstructor;
    TypeError: TypeErrorConstructor;
    TypedArrayPrototypeGetSymbolToStringTag: (self: unknown) => string | undefined;
    Uint32Array: Uint32ArrayConstructor;
    Uint8Array: Uint8ArrayConstructor;
    uncurryThis: <T, A extends any[], R>(
      method: (this: T, ...args: A) => R,
    ) => (self: T, ...args: A) => R;
  };
  export const core: {
    createTimer(callback: () => void, delay: number, ...rest: unknown[]): number;
    cancelTimer(timer: number): void;
    setUnhandledPromiseRejectionHandler(handler: (promise: unknown, reason: any) => boolean): void;
  };
}

interface ErrorConstructor {
  /** How many lines V8 notes of the stack. */
  stackTraceLimit: number;
}

declare namespace WebAssembly {
  class Module {
    constructor(bytes: ArrayBuffer | ArrayBufferView);
    static imports(module: Module): { module: string; name: string; kind: string }[];
    static exports(module: Module): { name: string; kind: string }[];
    static customSections(module: Module, name: string): ArrayBuffer[];
  }
  class Instance {
    constructor(module: Module, imports?: object);
    readonly exports: any;
  }
  /** An import that suspends the stack until its promise is settled. */
  class Suspending {
    constructor(wait: (...args: any[]) => Promise<any>);
  }
  class Memory {
    constructor(descriptor: { initial: number; maximum?: number; shared?: boolean });
    readonly buffer: ArrayBuffer;
    grow(delta: number): number;
    toFixedLengthBuffer?(): ArrayBuffer;
    toResizableBuffer?(): ArrayBuffer;
  }
  class Table {
    constructor(descriptor: { element: string; initial: number; maximum?: number });
    length: number;
    get(index: number): any;
    set(index: number, value?: any): void;
    grow(delta: number, value?: any): number;
  }
  class Global {
    constructor(descriptor: { __proto__?: null; value: string; mutable?: boolean }, value?: any);
    value: any;
  }
  class Tag {
    constructor(descriptor: { parameters: string[] });
  }
  class Exception {
    constructor(tag: Tag, payload: unknown[], options?: { traceStack?: boolean });
    is(tag: Tag): boolean;
    getArg(tag: Tag, index: number): any;
  }
  class RuntimeError extends Error {}
  class CompileError extends Error {}
  class LinkError extends Error {}
}

/** Of `globals.js`, for the modules after it. */
declare class TextEncoder {
  encode(text: string): Uint8Array;
}

declare class TextDecoder {
  constructor(label?: string, options?: { fatal?: unknown });
  decode(data?: ArrayBuffer | ArrayBufferView): string;
}
