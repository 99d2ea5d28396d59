import { tokensOfEach } from "#core/latency/latency-model.ts";
import type { WorkloadRequest } from "#trace/workload-request.ts";
import type { DriveOptions } from "./options.ts";
import type { PromptWriter } from "./prompt-writer.ts";

type BodyOptions = Pick<DriveOptions, "api" | "stream" | "forceOutput">;

/** Builds the JSON body of a request around its rendered prompts. A chat has one: of several, the first gets all answers. */
export function requestBody(
  request: WorkloadRequest,
  model: string,
  prompts: PromptWriter,
  { api, stream, forceOutput }: BodyOptions,
): Buffer {
  const name = JSON.stringify(model);
  const [before, after] =
    api === "chat"
      ? [`{"model":${name},"messages":[{"role":"user","content":`, "}]"]
      : [`{"model":${name},"prompt":`, ""];
  const { sequences = 1, tokensByPrompt } = request;
  const isList = tokensByPrompt !== undefined && api === "completions";
  const answers = isList ? Math.floor(sequences / tokensByPrompt.length) : sequences;
  const tokens = tokensOfEach(request.outputTokens, sequences);
  const length = `${answers > 1 ? `"n":${answers},` : ""}"max_tokens":${tokens}`;
  const forced = forceOutput ? `,"min_tokens":${tokens},"ignore_eos":true` : "";
  const streamed = stream ? `,"stream":true,"stream_options":{"include_usage":true}` : "";
  return Buffer.concat([
    Buffer.from(before),
    isList ? prompts.promptsJson(request, tokensByPrompt) : prompts.promptJson(request),
    Buffer.from(`${after},${length}${forced},"temperature":0${streamed}}`),
  ]);
}
