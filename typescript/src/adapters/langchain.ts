// A tool for LangChain that runs Python.

import { DynamicStructuredTool } from "@langchain/core/tools";

import type { Session } from "../session.js";
import {
  CODE_SCHEMA,
  codeOf,
  DESCRIPTION,
  type PythonToolOptions as Options,
  runForModel,
} from "./runs.js";

export type { Picture, PythonResult } from "./runs.js";

/** The settings of `pythonTool`. */
export interface PythonToolOptions extends Options {
  /** The name of the tool, `run_python` by default. */
  readonly name?: string;
}

/**
 * Returns a tool that runs Python in a session, which keeps its variables.
 *
 * The model gets the output, the value or the traceback, and the pictures; the message's `artifact`
 * is the `PythonResult`. Calls wait for each other; when the `signal` of the agent's run is
 * aborted, the code is interrupted. If a limit has ended the session, the next call starts it anew,
 * and says so.
 *
 * ```ts
 * const agent = createAgent({ model, tools: [pythonTool(session)] });
 * ```
 */
export function pythonTool(
  session: Session,
  options: PythonToolOptions = {},
): DynamicStructuredTool {
  const { name = "run_python", description = DESCRIPTION } = options;
  return new DynamicStructuredTool({
    name,
    description,
    schema: CODE_SCHEMA,
    responseFormat: "content_and_artifact",
    func: async (input: unknown, _manager, config) => {
      const result = await runForModel(session, codeOf(input), options, config?.signal);
      const { text, pictures } = result;
      if (pictures.length === 0) return [text, result];
      const images = pictures.map(({ mediaType, data }) => ({
        type: "image",
        mimeType: mediaType,
        data,
      }));
      return [[{ type: "text", text }, ...images], result];
    },
  });
}
