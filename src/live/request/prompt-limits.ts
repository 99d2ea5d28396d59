import { type Refusal, refusal } from "../http/errors.ts";
import type { ParsedPrompt } from "./parse-prompt.ts";
import type { GatewayLimits } from "../http/limits.ts";

type CountLimit = "messagesMax" | "contentPartsMax" | "toolsMax" | "promptsMax";

/** What a request asks the engine to read has more of something than the limits allow; undefined where it has not. */
export function beyondLimits({ source, count }: ParsedPrompt, limits: GatewayLimits): Refusal | undefined {
  if (count > limits.promptsMax) return beyond("prompt", `${count} prompts`, "promptsMax", limits);
  if (source?.kind !== "chat") return undefined;
  const { messages, tools } = source;
  if (messages.length > limits.messagesMax) {
    return beyond("messages", `${messages.length} messages`, "messagesMax", limits);
  }
  if (tools !== undefined && tools.length > limits.toolsMax) {
    return beyond("tools", `${tools.length} tools`, "toolsMax", limits);
  }
  let parts = 0;
  for (let at = 0; at < messages.length; at++) {
    const { content } = messages[at]!;
    if (Array.isArray(content)) parts += content.length;
    if (parts <= limits.contentPartsMax) continue;
    return beyond(`messages[${at}].content`, `${parts} or more content parts`, "contentPartsMax", limits);
  }
  return undefined;
}

function beyond(param: string, what: string, limit: CountLimit, limits: GatewayLimits): Refusal {
  const message = `The request has ${what}; this gateway accepts at most ${limits[limit]} (its limits.${limit}).`;
  return refusal("bad-request", message, param);
}
