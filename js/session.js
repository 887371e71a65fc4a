// The session's entry points for the host: boot, run one command frame, interrupt a wait.
// Frames are bytes from the host to our Python glue and back; this file does not look into them.

import { core, primordials } from "ext:core/mod.js";
import { clearTimeout, reportUncaught, schedule, setTimeout } from "ext:isolet/globals.js";
import { becomeTerminal, hasOutput } from "ext:isolet/stdio.js";
import { mountAll, rehearseMount } from "ext:isolet/mounts.js";
import "ext:isolet/fetch.js";
import { bytesOf } from "ext:isolet/calls.js";
import { boot } from "ext:isolet/pyodide.js";
import { Parking, spawn } from "ext:isolet/parking.js";
import { shellCalls } from "ext:isolet/shell.js";
import { watchLine } from "ext:isolet/stop_line.js";
import {
  answered,
  order,
  resumeOrder,
  savedOrder,
  StrongRef,
  turns,
} from "ext:isolet/turns.js";
import { WrittenFiles } from "ext:isolet/written_files.js";
import {
  op_isolet_display,
  op_isolet_end_look_back,
  op_isolet_entry_points,
  op_isolet_exited,
  op_isolet_frame_take,
  op_isolet_import,
  op_isolet_looked_back,
  op_isolet_net_check,
  op_isolet_net_close,
  op_isolet_net_connect,
  op_isolet_net_read,
  op_isolet_net_send,
  op_isolet_net_start,
  op_isolet_paths,
  op_isolet_report,
  op_isolet_save_refused,
  op_isolet_submit,
  op_isolet_tool_block,
  op_isolet_tool_call,
  op_isolet_tool_cancel,
  op_isolet_tool_soon,
  op_isolet_tool_take,
} from "ext:core/ops";
// The last one: the modules before it capture what it removes.
import "ext:isolet/lockdown.js";

core.setUnhandledPromiseRejectionHandler((_promise, reason) => {
  reportUncaught(reason);
  return true;
});

const {
  Error,
  ObjectFreeze,
  Promise,
  PromisePrototypeThen,
  ReflectApply,
} = primordials;

/** What `start` makes; the host calls nothing else before. @type {any} */
let session = null;

/** Whether the session may become a deterministic one: only before a guest has it. */
let mayOrder = true;
let isRehearsal = false;

/** What a promise resolves to, or -1 if that takes longer than `timeout` milliseconds. */
function within(promise, timeout) {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => resolve(-1), timeout);
    const settled = (settle) => (result) => {
      clearTimeout(timer);
      settle(result);
    };
    PromisePrototypeThen(promise, settled(resolve), settled(reject));
  });
}

/**
 * What our Python glue may call. Addresses are in the guest's own memory, where they do no harm.
 */
function bridge(booted, parking) {
  const { Module, memory, suspensions, localTime, saving, foreignMemory } = booted;
  /** Whether nothing else can happen in a deterministic session while Python waits in place. */
  const isAlone = () => turns?.isEmpty() && suspensions.isEmpty();
  const at = (address, length) => bytesOf(memory, address, length);
  return ObjectFreeze({
    __proto__: null,
    /** Has a callback of Python's called, which may leave an interrupt held back. */
    schedule: (callback, delay) =>
      schedule(() => {
        try {
          return callback();
        } finally {
          suspensions.release(0);
        }
      }, delay),
    /** Mounts what the host has for the session, at the paths in these bytes. */
    mount: (address, length) => mountAll(Module, op_isolet_paths(at(address, length))),
    rehearse_mount: () => {
      isRehearsal = true;
      rehearseMount(Module);
    },
    rehearse_save: () => saving.rehearse(),
    interrupt: () => suspensions.endOutermost(),
    hold: (thread = 0, forThread = false) => suspensions.hold(thread, forThread),
    release: (thread = 0) => suspensions.release(thread),
    spare: (setResult) => suspensions.spare(setResult),
    /** Makes the session deterministic; whether its entropy is another one from here on. */
    order: (high, low, started, clocks) => {
      if (!mayOrder) throw new Error("the session has begun");
      suspensions.count();
      saving.objects.replaceGlobal("WeakRef", StrongRef);
      return order(high, low, started, clocks);
    },
    aligned: () => suspensions.aligned(),
    /** Whether a recorded session is only looked back at. */
    is_looked_back: () => op_isolet_looked_back(),
    /** Has `stop` called where a session that is looked back at comes to its line. */
    watch_line: (monitoring, glue, stop) => watchLine(monitoring, glue, stop),
    end_look_back: () => op_isolet_end_look_back(),
    keep_order: () => {
      savedOrder();
    },
    resume_order: () => resumeOrder(),
    set_alarm: (delay) => suspensions.setAlarm(delay),
    take_alarm: () => suspensions.takeAlarm(),
    set_zone: (zone) => localTime.set(zone),
    /** How many objects of JavaScript Python refers to that cannot be saved. */
    foreign: () => saving.objects.foreign(),
    is_kept: (object) => saving.objects.isKept(object),
    /** Has errors raised by functions of C that would end the interpreter. */
    guard: (address, count) => foreignMemory.guard(Module, address, count),
    /** Has the session saved once Python has returned; it waits for so many timers. */
    save: (timers) => {
      session.timers = timers;
    },
    shell: shellCalls(Module, memory),
    spawn,
    park: (number, timeout, thread) => parking.park(number, timeout, thread),
    unpark: (number) => parking.unpark(number),
    /** Resolves after `delay` milliseconds. */
    sleep: (delay) => new Promise((resolve) => schedule(resolve, delay)),
    /** Displays the object whose formats are the `length` bytes at `address`. */
    display: (address, length) => op_isolet_display(at(address, length)),
    /** Copies the pending command frame to `address`. */
    take: (address, length) => op_isolet_frame_take(at(address, length)),
    /**
     * Hands `length` bytes at `address` to the host as the report, and those of a text that follow
     * them, and holds interrupts back, which would come too late.
     */
    give: (address, length, text, textLength) => {
      suspensions.hold(0, false);
      op_isolet_report(at(address, length), at(text, textLength));
    },
    /** Says which output streams are for a terminal, and how large that is. */
    terminal: (stdout, stderr, columns, rows) =>
      becomeTerminal(Module, stdout, stderr, columns, rows),
    /** Whether standard output and standard error are open. */
    has_output: () => hasOutput(Module),
    /**
     * Calls a host function by its name, with the arguments; both are bytes in the memory. Returns
     * the number of the call, or 0 if the answer comes soon and fits into the room for it, where it
     * is then.
     */
    call: (tool, toolLength, address, length, answer, room) => {
      const call = op_isolet_tool_call(at(tool, toolLength), at(address, length));
      if (room === 0 || (turns !== null && !isAlone())) return call;
      return op_isolet_tool_soon(call, at(answer, room)) ? 0 : call;
    },
    /**
     * Resolves to the length of the answer to a call, or to -1 after `timeout` milliseconds if
     * given.
     */
    answered: (call, timeout = -1) =>
      timeout < 0 ? answered(call) : within(answered(call), timeout),
    /**
     * As `answered`, but blocks, where Python cannot be suspended; -2 if it has to look for an
     * interrupt first.
     */
    answered_here: (call, timeout = -1) => op_isolet_tool_block(call, timeout),
    /** Copies the answer to a call to `address`. */
    answer: (call, address, length) => op_isolet_tool_take(call, at(address, length)),
    cancel: (call) => {
      turns?.forget(call);
      op_isolet_tool_cancel(call);
    },
    /** Why no request can go to a server; empty if one may. */
    net_check: (host, port) => op_isolet_net_check(host, port),
    /** Connects to a server, for the next request to it; returns the number of the call. */
    net_connect: (host, port) => op_isolet_net_connect(host, port),
    /** Starts the HTTP exchange described at `address`; returns its number, which is a call's. */
    net_start: (address, length) => op_isolet_net_start(at(address, length)),
    net_send: (exchange, address, length) => op_isolet_net_send(exchange, at(address, length)),
    net_read: (exchange, limit) => op_isolet_net_read(exchange, limit),
    net_close: (exchange) => op_isolet_net_close(exchange),
    /** Asks for the package that has a module; returns the number of the call. */
    import_package: (module) => op_isolet_import(module),
    /**
     * Hands the fields at `address` over as the submission of this form; returns the number of the
     * call.
     */
    submit: (form, address, length) => op_isolet_submit(form, at(address, length)),
  });
}

async function start(createModule, makeImage) {
  const booted = await boot(createModule, makeImage);
  if (booted === null) return;
  const { Module, memory, suspensions, exitStatus, saving, stdlib } = booted;
  const glue = Module.API.sys.modules.get("_isolet");
  const parking = new Parking();
  glue.attach(bridge(booted, parking));
  const entry = glue.handle.copy();
  const { callPromising } = entry;
  session = {
    __proto__: null,
    handle: (length) => ReflectApply(callPromising, entry, [length]),
    peek: glue.peek.copy(),
    suspensions,
    parking,
    writtenFiles: new WrittenFiles(Module.FS),
    exitStatus,
    saving,
    /** How many timers there are of Python's, if the session is to be saved. */
    timers: null,
  };
  Module.API.sys.modules.delete("_isolet");
  glue.destroy();
  saving.begin(Module, memory, stdlib);
}

/**
 * Runs the pending command frame of `length` bytes to its end; the reply has then been given.
 * `os._exit` and its like end the interpreter without one, and the status is all there is.
 */
async function handle(length) {
  session.suspensions.begin();
  try {
    await session.handle(length);
  } catch (error) {
    const status = session.exitStatus(error);
    if (status === undefined) throw error;
    op_isolet_exited(status);
  }
  mayOrder &&= isRehearsal;
  isRehearsal = false;
  session.writtenFiles.tell();
  if (session.timers !== null) save();
}

/** Hands the session to the host, or says why it cannot be saved. */
function save() {
  const { timers } = session;
  session.timers = null;
  try {
    session.saving.save(timers);
  } catch (error) {
    op_isolet_save_refused(`${error?.message ?? error}`);
  }
}

/** Becomes the session that the host has saved; a command that resumes it follows. */
function restore() {
  mayOrder = true;
  if (session.saving.restore()) session.suspensions.count();
  session.writtenFiles.forget();
}

function interrupt() {
  session?.suspensions.interrupt();
}

/** Says that Python waits and that nothing is left which could end a wait. */
function stalled() {
  session?.parking.stalled();
}

/** Lets the next thing happen in a deterministic session; says when the first timer is due. */
function turn(what, call, length) {
  return turns?.turn(what, call, length) ?? -1;
}

/** Runs the pending command frame while another one is suspended. It cannot suspend itself. */
function peek(length) {
  session.peek(length);
}

op_isolet_entry_points(start, handle, interrupt, stalled, peek, turn, restore);
