// The session's entry points for the host: boot, run one command frame, interrupt a wait.
// Frames are bytes from the host to our Python glue and back; this file does not look into them.

import { core } from "ext:core/mod.js";
import { reportUncaught, schedule } from "ext:isolet/10_globals.js";
import { boot } from "ext:isolet/60_pyodide.js";
import {
  op_isolet_entry_points,
  op_isolet_exited,
  op_isolet_frame_take,
  op_isolet_reply,
  op_isolet_submit,
  op_isolet_tool_call,
  op_isolet_tool_cancel,
  op_isolet_tool_take,
  op_isolet_tool_wait,
} from "ext:core/ops";
import "ext:isolet/99_lockdown.js";

core.setUnhandledPromiseRejectionHandler((_promise, reason) => {
  reportUncaught(reason);
  return true;
});

let session = null;

/** What our Python glue may call. Addresses are in the guest's own memory, where they do no harm. */
function bridge(Module, suspensions) {
  return {
    __proto__: null,
    schedule,
    interrupt: () => suspensions.endOutermost(),
    hold: () => suspensions.hold(true),
    release: () => suspensions.hold(false),
    /** Resolves after `delay` milliseconds. */
    sleep: (delay) => new Promise((resolve) => schedule(resolve, delay)),
    /** Copies the pending command frame to `address`. */
    take(address, length) {
      op_isolet_frame_take(Module.HEAPU8.subarray(address, address + length));
    },
    /** Hands `length` bytes at `address` to the host as the reply. */
    give(address, length) {
      op_isolet_reply(Module.HEAPU8.subarray(address, address + length), Module.HEAPU8.length);
    },
    /** Calls a host function with the arguments at `address`; returns the number of the call. */
    call: (tool, address, length) =>
      op_isolet_tool_call(tool, Module.HEAPU8.subarray(address, address + length)),
    /** Resolves to the length of the answer to a call. */
    answered: (call) => op_isolet_tool_wait(call),
    /** Copies the answer to a call to `address`. */
    answer(call, address, length) {
      op_isolet_tool_take(call, Module.HEAPU8.subarray(address, address + length));
    },
    cancel: (call) => op_isolet_tool_cancel(call),
    /** Hands the fields at `address` over as the submission; returns the number of the call. */
    submit: (address, length) =>
      op_isolet_submit(Module.HEAPU8.subarray(address, address + length)),
  };
}

async function start(createModule, makeImage) {
  const booted = await boot(createModule, makeImage);
  if (booted === null) return;
  const { Module, suspensions, exitStatus } = booted;
  const glue = Module.API.sys.modules.get("_isolet");
  glue.attach(bridge(Module, suspensions));
  session = {
    __proto__: null,
    handle: glue.handle.copy(),
    peek: glue.peek.copy(),
    suspensions,
    exitStatus,
  };
  Module.API.sys.modules.delete("_isolet");
  glue.destroy();
}

/**
 * Runs the pending command frame of `length` bytes to its end; the reply has then been given.
 * `os._exit` and its like end the interpreter without one, and the status is all there is.
 */
async function handle(length) {
  try {
    await session.handle.callPromising(length);
  } catch (error) {
    const status = session.exitStatus(error);
    if (status === undefined) throw error;
    op_isolet_exited(status);
  }
}

function interrupt() {
  session?.suspensions.interrupt();
}

/** Runs the pending command frame while another one is suspended. It cannot suspend itself. */
function peek(length) {
  session.peek(length);
}

op_isolet_entry_points(start, handle, interrupt, peek);
