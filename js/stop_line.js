// Stops a session that is looked back at where it comes to a line. Python asks JavaScript about
// each line once: a function of Python would take more of the steps that a replay counts.

import { primordials } from "ext:core/mod.js";
import { op_isolet_stop_line } from "ext:core/ops";

const {
  Number,
  StringPrototypeEndsWith,
  StringPrototypeIndexOf,
  StringPrototypeSlice,
  StringPrototypeStartsWith,
} = primordials;

/** Where Python's own code is. */
const LIBRARY = "/lib/";

/** The number of a tool that none of Python's own uses. */
const TOOL = 4;

/**
 * Has `stop` called, a function of Python, before a line runs, if the session stops at one.
 * `monitoring` is `sys.monitoring`, and `glue` is what the names of our own code begin with.
 */
export function watchLine(monitoring, glue, stop) {
  const asked = op_isolet_stop_line();
  if (asked === "") return;
  const space = StringPrototypeIndexOf(asked, " ");
  const line = Number(StringPrototypeSlice(asked, 0, space));
  const file = StringPrototypeSlice(asked, space + 1);
  const isIts = (name) =>
    file === ""
      ? !StringPrototypeStartsWith(name, LIBRARY) && !StringPrototypeStartsWith(name, glue)
      : name === file || StringPrototypeEndsWith(name, `/${file}`);
  const { DISABLE, events } = monitoring;
  // A proxy ends with the call that it was given to, or that returned it.
  const never = DISABLE.copy();
  const stopped = stop.copy();
  monitoring.use_tool_id(TOOL, "isolet");
  monitoring.register_callback(TOOL, events.LINE, (code, at) => {
    if (at === line && isIts(code.co_filename)) return stopped();
    return never.copy();
  });
  monitoring.set_events(TOOL, events.LINE);
}
