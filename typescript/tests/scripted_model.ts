// A model of the AI SDK that calls one tool with given codes. Mastra takes it, too.

import { convertArrayToReadableStream, MockLanguageModelV4 } from "ai/test";

type Generated = Awaited<ReturnType<MockLanguageModelV4["doGenerate"]>>;
type Streamed = Awaited<ReturnType<MockLanguageModelV4["doStream"]>>;
type StreamPart = Streamed["stream"] extends ReadableStream<infer Part> ? Part : never;

const usage: Generated["usage"] = {
  inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 1, text: 1, reasoning: 0 },
};

/** A model that calls the tool `python` with one code in each step, and then says "done". */
export function scripted(...codes: string[]): MockLanguageModelV4 {
  const steps = codes.map((code, at): Generated => ({
    content: [{
      type: "tool-call",
      toolCallId: `call-${at}`,
      toolName: "python",
      input: JSON.stringify({ code }),
    }],
    finishReason: { unified: "tool-calls", raw: undefined },
    usage,
    warnings: [],
  }));
  const last: Generated = {
    content: [{ type: "text", text: "done" }],
    finishReason: { unified: "stop", raw: undefined },
    usage,
    warnings: [],
  };
  const all = [...steps, last];
  return new MockLanguageModelV4({ doGenerate: all, doStream: all.map(streamed) });
}

/** Returns the prompts that a model got, whether it generated or streamed. */
export function promptsOf({ doGenerateCalls, doStreamCalls }: MockLanguageModelV4) {
  return [...doGenerateCalls, ...doStreamCalls].map(({ prompt }) => prompt);
}

/** Returns the outputs of tools in the last prompt of a model. */
export function outputsIn(model: MockLanguageModelV4) {
  return (promptsOf(model).at(-1) ?? []).flatMap((message) =>
    message.role === "tool"
      ? message.content.flatMap((part) => (part.type === "tool-result" ? [part.output] : []))
      : []
  );
}

/** Returns the same as texts: of what code printed. */
export function textsIn(model: MockLanguageModelV4): string[] {
  return outputsIn(model).map((output) =>
    output.type === "text" || output.type === "error-text" ? output.value : JSON.stringify(output)
  );
}

function streamed({ content, finishReason, usage: used }: Generated): Streamed {
  const parts = content.flatMap((part): StreamPart[] => {
    if (part.type === "tool-call") return [part];
    if (part.type !== "text") throw new TypeError(`the script has a part of type ${part.type}`);
    const id = "text";
    return [
      { type: "text-start", id },
      { type: "text-delta", id, delta: part.text },
      { type: "text-end", id },
    ];
  });
  return {
    stream: convertArrayToReadableStream<StreamPart>([
      { type: "stream-start", warnings: [] },
      ...parts,
      { type: "finish", finishReason, usage: used },
    ]),
  };
}
