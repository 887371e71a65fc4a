// The module `ext:core/ops`. Generated from `src/isolate/ops` by `cargo xtask generate`.

/**
 * Sets the guest's only alarm, which is due in this many milliseconds, in place of the last one; 0
 * is none. When it is due, the guest looks for it at the next point where it can.
 */
export function op_isolet_alarm_set(milliseconds: number): void;

/**
 * Takes the alarm if it is due, or even before if `is_early`. Returns `true` if there was one.
 */
export function op_isolet_alarm_take(is_early: boolean): boolean;

/**
 * Confines the process, if it is told to. Called before anything of a package is used: its code,
 * or what the image has of it.
 */
export function op_isolet_confine(): void;

/**
 * Writes a line of `console` output.
 */
export function op_isolet_console(stream: number, line: string): void;

/**
 * Decodes UTF-8 (0), UTF-16LE (1) or Latin-1 (2).
 */
export function op_isolet_decode(bytes: Uint8Array, encoding: number, fatal: boolean): string;

/**
 * Takes the reason why the interpreter cannot continue.
 */
export function op_isolet_died(reason: string): void;

/**
 * Displays an object: its formats, in the value format.
 */
export function op_isolet_display(formats: Uint8Array): void;

/**
 * Ends the replay of a session that is looked back at, which has come to its line.
 */
export function op_isolet_end_look_back(): void;

export function op_isolet_entropy(buffer: Uint8Array): void;

/**
 * Stores our JavaScript's entry points.
 */
export function op_isolet_entry_points(
  start: Function,
  handle: Function,
  interrupt: Function,
  stalled: Function,
  peek: Function,
  turn: Function,
  restore: Function,
): void;

/**
 * Takes the status with which the guest ended its interpreter.
 */
export function op_isolet_exited(status: number): void;

/**
 * Returns the symbols that packages link to. Also works after the boot.
 */
export function op_isolet_exports(): string;

/**
 * Starts an exchange that `fetch` describes, with the headers as JSON. Returns its number.
 */
export function op_isolet_fetch(
  method: string,
  url: string,
  headers: string,
  body: Uint8Array | null,
  redirect: string,
): number;

export function op_isolet_file_close(file: number): number;

/**
 * Creates a symbolic link.
 */
export function op_isolet_file_link(mount: number, path: string, target: string): number;

/**
 * Lists a directory. Returns an error number or 0, and the names.
 */
export function op_isolet_file_list(mount: number, path: string): [number, string[]];

export function op_isolet_file_make_directory(mount: number, path: string, mode: number): number;

/**
 * Sets the permission bits of a file.
 */
export function op_isolet_file_mode(mount: number, path: string, mode: number): number;

/**
 * Opens a file and returns its handle.
 */
export function op_isolet_file_open(mount: number, path: string, flags: number): number;

/**
 * Reads at an offset. Returns the number of bytes read.
 */
export function op_isolet_file_read(file: number, offset: number, into: Uint8Array): number;

/**
 * Reads a symbolic link. Returns an error number or 0, and the target.
 */
export function op_isolet_file_read_link(mount: number, path: string): [number, string];

export function op_isolet_file_remove(mount: number, path: string): number;

export function op_isolet_file_remove_directory(mount: number, path: string): number;

export function op_isolet_file_rename(mount: number, from: string, to: string): number;

export function op_isolet_file_resize(file: number, size: number): number;

export function op_isolet_file_resize_at(mount: number, path: string, size: number): number;

/**
 * Describes an open file.
 */
export function op_isolet_file_stat(file: number, target: Uint8Array): number;

/**
 * Describes the file at a path. A link is not followed.
 */
export function op_isolet_file_stat_at(mount: number, path: string, target: Uint8Array): number;

export function op_isolet_file_sync(file: number): number;

/**
 * Sets the times of a file, in milliseconds since 1970.
 */
export function op_isolet_file_times(
  mount: number,
  path: string,
  accessed_ms: number,
  modified_ms: number,
): number;

/**
 * Writes at an offset, or at the end of a file opened for appending. Returns the number of bytes
 * written.
 */
export function op_isolet_file_write(file: number, offset: number, bytes: Uint8Array): number;

/**
 * Tells the host of a file that the guest has written, by its path in the guest.
 */
export function op_isolet_file_written(path: string, size: number): void;

/**
 * Moves the next part of the pending command frame into the guest's memory.
 */
export function op_isolet_frame_take(target: Uint8Array): void;

export function op_isolet_image_config(): string;

/**
 * Returns the length of the memory from which the image was taken, in bytes.
 */
export function op_isolet_image_length(): number;

/**
 * Fills the interpreter's memory with the contents of the image.
 */
export function op_isolet_image_restore(memory: any): void;

/**
 * Takes the memory of an interpreter that was booted to make the image.
 */
export function op_isolet_image_save(memory: Uint8Array, config: string): void;

/**
 * Requests the package that has a module and returns the number of the call.
 */
export function op_isolet_import(module: string): number;

/**
 * Takes the interrupt that the host requested. Returns `true` if there was one.
 */
export function op_isolet_interrupted(): boolean;

/**
 * Returns `true` if these bytes are the standard library.
 */
export function op_isolet_is_stdlib(bytes: Uint8Array): boolean;

/**
 * Returns a dynamic library of the image.
 */
export function op_isolet_library(name: string): WebAssembly.Module;

/**
 * Stores a dynamic library for the image.
 */
export function op_isolet_library_keep(name: string, wasm: Uint8Array): void;

/**
 * Returns `true` if the session is only looked back at, so that nothing is to come after a run
 * that was stopped.
 */
export function op_isolet_looked_back(): boolean;

/**
 * Counts the memory that the interpreter was instantiated with, and keeps it to read its size
 * later.
 */
export function op_isolet_memory_adopt(memory: any): void;

/**
 * Fills the interpreter's memory with its initial contents.
 */
export function op_isolet_memory_begin(memory: any): void;

/**
 * Takes the bytes with which the interpreter's memory can grow to `needed` bytes, or somewhat
 * more. Returns the permitted size, or 0 if the budget has too little left.
 */
export function op_isolet_memory_grow(needed: number, with_room: boolean): number;

/**
 * Takes bytes for another memory to be made. They are never given back.
 */
export function op_isolet_memory_make(bytes: number): boolean;

/**
 * Takes bytes for another memory to grow by. They are never given back.
 */
export function op_isolet_memory_take(bytes: number): boolean;

/**
 * Returns the guest paths of the mounts, in the order of their numbers.
 */
export function op_isolet_mount_points(): string[];

/**
 * Returns why no request can go to a server; an empty result if one may.
 */
export function op_isolet_net_check(host: string, port: number): string;

/**
 * Takes the answer to a read: an exception's class and message, if any, and the bytes.
 */
export function op_isolet_net_chunk(call: number): [[string, string] | null, Uint8Array];

/**
 * Ends an exchange.
 */
export function op_isolet_net_close(exchange: number): void;

/**
 * Connects to a server, for the next request to it. Returns the number of the call.
 */
export function op_isolet_net_connect(host: string, port: number): number;

/**
 * Takes the answer to the call that started an exchange.
 */
export function op_isolet_net_head(call: number): {
  error: [string, string] | null;
  status: number;
  reason: string;
  url: string;
  redirected: boolean;
  headers: [string, string][];
};

/**
 * Reads the body of the response. Returns the number of the call, which is answered with at most
 * `max` bytes, or none at the end.
 */
export function op_isolet_net_read(exchange: number, max: number): number;

/**
 * Sends the next chunk of the body; an empty one ends it. Returns the number of the call, which is
 * answered when there is room for more.
 */
export function op_isolet_net_send(exchange: number, chunk: Uint8Array): number;

/**
 * Starts an exchange that our Python glue describes. Returns its number.
 */
export function op_isolet_net_start(request: Uint8Array): number;

/**
 * Returns the milliseconds since the session started.
 */
export function op_isolet_now(): number;

/**
 * Makes the session deterministic, with the two halves of a seed and the time of day at which it
 * starts, in milliseconds since 1970. One that is deterministic keeps its time. `clocks` is the
 * [number](Clocks::number) of what its clocks go by. Returns `true` unless it has this seed
 * already.
 */
export function op_isolet_order(
  high: number,
  low: number,
  started: number,
  clocks: number,
): boolean;

/**
 * The guest of a deterministic session waits for the answer to a call.
 */
export function op_isolet_order_expect(call: number): void;

/**
 * Goes on from what another session was told.
 */
export function op_isolet_order_resume(saved: string): void;

/**
 * Returns what a deterministic session goes on from; nothing for another one.
 */
export function op_isolet_order_state(): string;

/**
 * The interpreter of a deterministic session has made the steps between two checks for signals.
 * Returns `true` if the alarm is due.
 */
export function op_isolet_order_steps(): boolean;

/**
 * Returns the paths that these bytes contain, each ending with NUL.
 */
export function op_isolet_paths(bytes: Uint8Array): string[];

/**
 * Returns the modules that an interpreter must import before its image is taken.
 */
export function op_isolet_preloaded(): string[];

/**
 * Returns our Python modules: names and sources.
 */
export function op_isolet_python_sources(): [string, string][];

/**
 * Takes the guest's report on the current command or peek, in two parts. If there are several, the
 * last one counts.
 */
export function op_isolet_report(report: Uint8Array, text: Uint8Array): void;

/**
 * Begins to write the session, with the description of what is in JavaScript.
 */
export function op_isolet_save_begin(description: string): void;

/**
 * Writes the contents of a file.
 */
export function op_isolet_save_bytes(bytes: Uint8Array): void;

/**
 * Writes the memory, which is the last part.
 */
export function op_isolet_save_memory(memory: Uint8Array): void;

/**
 * Tells the host why the session cannot be saved.
 */
export function op_isolet_save_refused(reason: string): void;

/**
 * Reads the contents of the next file.
 */
export function op_isolet_saved_bytes(into: Uint8Array): void;

/**
 * Begins to read a saved session. Returns its description.
 */
export function op_isolet_saved_description(): string;

/**
 * Returns a library of the saved session as a module, if it is part of a package. Otherwise
 * returns undefined.
 */
export function op_isolet_saved_library(path: string): any;

/**
 * Makes this memory the saved one, and ends reading. Without a memory, returns the length of the
 * saved one, in bytes.
 */
export function op_isolet_saved_memory(memory: any): number;

/**
 * Returns `true` if an interrupt ends the shell's run in a recorded session. Python takes it then.
 */
export function op_isolet_shell_interrupted(): boolean;

/**
 * Returns the compiled shell.
 */
export function op_isolet_shell_module(): WebAssembly.Module;

/**
 * Fills the buffer from standard input. Returns the number of bytes, or -1 if the wait was
 * interrupted.
 */
export function op_isolet_stdin(buffer: Uint8Array): number;

/**
 * Returns the standard library. All of its pages count as the guest's memory, because the guest
 * may write to them.
 */
export function op_isolet_stdlib(): ArrayBuffer;

/**
 * Returns the line at which a session that is looked back at stops, as `LINE FILE`; empty if it
 * does not.
 */
export function op_isolet_stop_line(): string;

/**
 * Submits a result and returns the number of the call, whose answer is available at once.
 */
export function op_isolet_submit(form: number, fields: Uint8Array): number;

/**
 * Resolves on the next turn of the event loop: the intended cost of a timer of 0 ms.
 */
export function op_isolet_tick(): Promise<void>;

/**
 * Permits one more timer, if `pending` timers are below the limit.
 */
export function op_isolet_timer(pending: number): void;

/**
 * Blocks until the answer to a call arrives, for a guest that cannot be suspended, and returns its
 * length in bytes. Returns -1 after `timeout` milliseconds, unless that is negative, and -2 if the
 * guest must handle an interrupt first.
 */
export function op_isolet_tool_block(call: number, timeout: number): number;

/**
 * Calls a tool and returns the number of the call.
 */
export function op_isolet_tool_call(tool: Uint8Array, arguments: Uint8Array): number;

/**
 * Records that nobody waits for the answer to a call any more. 0 is the most recent call, whose
 * number the guest has not received.
 */
export function op_isolet_tool_cancel(call: number): void;

/**
 * Waits briefly for the answer to a call, and moves it into the guest's memory if it has arrived
 * and fits.
 */
export function op_isolet_tool_soon(call: number, target: Uint8Array): boolean;

/**
 * Moves the answer to a call into the guest's memory.
 */
export function op_isolet_tool_take(call: number, target: Uint8Array): void;

/**
 * Waits for the answer to a call and returns its length in bytes.
 */
export function op_isolet_tool_wait(call: number): Promise<number>;

/**
 * Encodes into a buffer of exactly that size.
 */
export function op_isolet_utf8_encode(text: string, target: Uint8Array): void;

/**
 * Encodes as many whole characters as fit. Returns the UTF-16 units read and the bytes written.
 */
export function op_isolet_utf8_encode_into(text: string, target: Uint8Array): [number, number];

/**
 * Returns how many bytes of UTF-8 the text takes.
 */
export function op_isolet_utf8_length(text: string): number;

/**
 * Returns the milliseconds since 1970.
 */
export function op_isolet_wall_clock(): number;

/**
 * Compiles a module: Pyodide's own during the boot, later trampolines and modules that the host
 * has verified.
 */
export function op_isolet_wasm_compile(source: any): WebAssembly.Module;

/**
 * Returns the compiled CPython.
 */
export function op_isolet_wasm_module(): WebAssembly.Module;

/**
 * Sets the address of the byte that makes the shell end its run. Returns `false` in a recorded
 * session: an interrupt has its place there, so the shell looks for it.
 */
export function op_isolet_watch_shell(memory: any, at: number): boolean;

/**
 * Sets the address of the byte that makes CPython check for an interrupt.
 */
export function op_isolet_watch_signals(memory: any, at: number): void;

export function op_isolet_write(stream: number, bytes: Uint8Array): void;

/**
 * Writes such a part as a line.
 */
export function op_isolet_write_line(
  stream: number,
  memory: Uint8Array,
  start: number,
  length: number,
): void;

/**
 * Writes `length` bytes of the interpreter's memory, from `start` on. What is not in it is not
 * written.
 */
export function op_isolet_write_part(
  stream: number,
  memory: Uint8Array,
  start: number,
  length: number,
): void;
