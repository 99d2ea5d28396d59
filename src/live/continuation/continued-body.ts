import type { KeptStream } from "./kept-stream.ts";
import type { Seam } from "./seam.ts";
import { isFields } from "../base/fields.ts";

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

/**
 * The request that goes on behind an answer's text: what was asked first, with the answer so far behind its prompt, or as
 * the last message of its chat, which the engine is to continue (`continue_final_message`, as Hugging Face's chat templates
 * have it). Its length is bounded by the events that had text, as nobody has counted the tokens.
 */
export function continuedText({ plan, seam }: KeptStream, text: string, firstBody: Buffer): Buffer {
  const parsed: unknown = JSON.parse(firstBody.toString());
  const first = isFields(parsed) ? parsed : {};
  const { outputTokensMax, outputTokensMin, dialect } = plan;
  const { return_token_ids: _ids, min_tokens: _min, max_tokens: _max, max_completion_tokens: _most, ...asked } = first;
  const { messages, prompt } = first;
  const behind =
    dialect === "chat"
      ? {
          messages: [...(Array.isArray(messages) ? (messages as unknown[]) : []), { role: "assistant", content: text }],
          continue_final_message: true,
          add_generation_prompt: false,
        }
      : { prompt: `${typeof prompt === "string" ? prompt : ""}${text}` };
  const body = {
    ...asked,
    ...behind,
    ...(outputTokensMax !== undefined && { max_tokens: Math.max(1, outputTokensMax - seam.tokens) }),
    ...(outputTokensMin > seam.tokens && { min_tokens: outputTokensMin - seam.tokens }),
    stream: true,
    stream_options: { include_usage: true },
  };
  return Buffer.from(JSON.stringify(body));
}
