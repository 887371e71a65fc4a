// Asks whether code may call a tool.

import { ToolError } from "../tools.js";

/** A call that waits for approval. */
export interface ApprovalRequest {
  /** The name of the tool, as its framework has it. */
  readonly toolName: string;
  /** What it is called with. The code has chosen it, within what the tool's schema allows. */
  readonly input: unknown;
  /** Names this call, and no other one of the same run of code. */
  readonly toolCallId: string;
  /** Aborted when the code waits no longer. The tool is not called then, whatever the answer. */
  readonly abortSignal: AbortSignal;
}

/** Whether a tool may be called. Only `true` is a yes. */
export type Approve = (request: ApprovalRequest) => boolean | PromiseLike<boolean>;

/**
 * Asks for approval of a call, and returns if it is given.
 *
 * @throws {ToolError} a `PermissionError`: it is not given, or there is nobody to ask.
 */
export async function ask(approve: Approve | undefined, request: ApprovalRequest): Promise<void> {
  const call = `the call of \`${request.toolName}\``;
  if (approve === undefined) {
    throw new ToolError("PermissionError", `${call} needs approval, and there is nobody to ask`);
  }
  let answer: unknown;
  try {
    answer = await approve(request);
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new ToolError("PermissionError", `${call} needs approval, and asking failed: ${why}`);
  }
  if (answer !== true) throw new ToolError("PermissionError", `${call} was not approved`);
}
