// A tool for the OpenAI Agents SDK that runs Python.

import { type FunctionTool, tool } from "@openai/agents";

import type { Session } from "../session.js";
import {
  CODE_SCHEMA,
  codeOf,
  DESCRIPTION,
  type PythonToolOptions as Options,
  runForModel,
} from "./runs.js";

/** The settings of `pythonTool`. */
export interface PythonToolOptions extends Options {
  /** The name of the tool, `run_python` by default. */
  readonly name?: string;
  /** Whether a person has to approve each code: the run of the agent then has an interruption. */
  readonly needsApproval?: boolean;
}

/**
 * Returns a tool that runs Python in a session, which keeps its variables.
 *
 * The model gets the output, the value or the traceback, and the pictures. Calls wait for each
 * other; when the agent's run is aborted, the code is interrupted. If a limit has ended the
 * session, the next call starts it anew, and says so.
 *
 * ```ts
 * const agent = new Agent({ name: "analyst", tools: [pythonTool(session)] });
 * ```
 */
export function pythonTool(session: Session, options: PythonToolOptions = {}): FunctionTool {
  const { name = "run_python", description = DESCRIPTION, needsApproval = false } = options;
  return tool({
    name,
    description,
    needsApproval,
    parameters: CODE_SCHEMA,
    execute: async (input, _context, details) => {
      const result = await runForModel(session, codeOf(input), options, details?.signal);
      const { text, pictures } = result;
      if (pictures.length === 0) return text;
      const images = pictures.map(({ mediaType, data }) => ({
        type: "image" as const,
        image: { data, mediaType },
      }));
      return [{ type: "text" as const, text }, ...images];
    },
  }) as unknown as FunctionTool;
}
