import { isFields } from "../base/fields.ts";
import type { KeptStream } from "./kept-stream.ts";

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
