// Hides the frames of Python stacks that are suspended. Part of a stack is in memory that others
// use meanwhile, with the frames from which CPython was entered; its garbage collector would follow
// them, whatever is there by then.

/** Where a thread's state has its newest frame: 3.14's `PyThreadState.current_frame`. */
const CURRENT_FRAME = 52;

/**
 * What CPython's table for debuggers, `_Py_DebugOffsets`, begins with, and where in it that place
 * is.
 */
const COOKIE = [0x78, 0x64, 0x65, 0x62, 0x75, 0x67, 0x70, 0x79];
const OFFSET = 208;

/** Replaces the imports through which a stack is put away and brought back. */
export function hookFrames(Module, env) {
  const { saveState, restoreState } = env;
  env.saveState = () => {
    const state = saveState();
    if (typeof state !== "object") return state; // it cannot be suspended
    const place = (state.threadState + CURRENT_FRAME) >>> 2;
    state.frame = Module.HEAPU32[place];
    Module.HEAPU32[place] = 0;
    return state;
  };
  env.restoreState = (state) => {
    Module.HEAPU32[(state.threadState + CURRENT_FRAME) >>> 2] = state.frame;
    restoreState(state);
  };
}

/** Makes sure that this CPython has its frames where they are looked for. */
export function checkFrames(memory) {
  const bytes = new Uint8Array(memory.buffer);
  let at = bytes.indexOf(COOKIE[0]);
  while (at >= 0 && !COOKIE.every((byte, index) => bytes[at + index] === byte)) {
    at = bytes.indexOf(COOKIE[0], at + 1);
  }
  const found = at < 0 ? undefined : new DataView(bytes.buffer).getUint32(at + OFFSET, true);
  if (found !== CURRENT_FRAME) {
    const expected = `a thread's frame is expected at ${CURRENT_FRAME}`;
    throw new Error(`${expected}, and CPython has it at ${found}`);
  }
}
