import type { KeptStream } from "./kept-stream.ts";
import type { Seam } from "./seam.ts";

/**
 * The completion that goes on behind a seam: prompt and answer so far as token ids, whatever route the stream came by, so
 * that no chat template and no tokenizer stands between.
 */
export function continuedBody(kept: KeptStream, seam: Seam): Buffer {
  const { plan, prompt } = kept;
  const { carried, outputTokensMax, outputTokensMin, modelTokensMax } = plan;
  const whole = outputTokensMax ?? modelTokensMax - prompt.length;
  const body = {
    ...carried,
    prompt: [...prompt, ...kept.tokensBefore(seam)],
    max_tokens: Math.max(1, whole - seam.tokens),
    ...(outputTokensMin > seam.tokens && { min_tokens: outputTokensMin - seam.tokens }),
    // What was held back may begin a stop string, so the rest is needed at once, and as it is.
    ...(kept.owed !== undefined && { include_stop_str_in_output: true }),
    stream: true,
    stream_options: { include_usage: true },
    return_token_ids: true,
  };
  return Buffer.from(JSON.stringify(body));
}
