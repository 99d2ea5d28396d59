import type { WorkloadRequest } from "#trace/workload-request.ts";
import type { DriveOptions } from "./options.ts";
import type { PromptWriter } from "./prompt-writer.ts";

type BodyOptions = Pick<DriveOptions, "api" | "stream" | "forceOutput">;

/** Builds the JSON body of a request around its rendered prompt. */
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
  const length = `"max_tokens":${request.outputTokens}`;
  const forced = forceOutput ? `,"min_tokens":${request.outputTokens},"ignore_eos":true` : "";
  const streamed = stream ? `,"stream":true,"stream_options":{"include_usage":true}` : "";
  return Buffer.concat([
    Buffer.from(before),
    prompts.promptJson(request),
    Buffer.from(`${after},${length}${forced},"temperature":0${streamed}}`),
  ]);
}
