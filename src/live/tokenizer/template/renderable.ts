import { JsonScan } from "../../base/json-scan.ts";
import type { ChatMessage, PromptSource } from "../text/tokenizer.ts";

type Chat = Extract<PromptSource, { kind: "chat" }>;

/**
 * Values that a template may be given: a template renders in one piece, about 0.6 us for each of them, so this is some 15
 * ms. A message counts as 8 of them, beside what it holds.
 */
const VALUES_MAX = 24_576;
const VALUES_PER_MESSAGE = 8;
/** Of one call: looked over and read in 2 ms. */
const ARGUMENTS_CHARS_MAX = 1 << 20;
/** Characters that take as long as a value. */
const ARGUMENTS_CHARS_PER_VALUE = 256;
const ARGUMENTS_LIMITS = {
  jsonDepthMax: 128,
  jsonKeysMax: VALUES_MAX,
  jsonFieldsMax: VALUES_MAX,
  jsonItemsMax: VALUES_MAX,
  jsonValuesMax: VALUES_MAX,
};

/** Whether rendering a chat holds up others for no longer than is fair. */
export function isRenderable({ messages, tools, template }: Chat): boolean {
  let left = VALUES_MAX - VALUES_PER_MESSAGE * messages.length;
  for (let at = 0; left >= 0 && at < messages.length; at++) left = withoutMessage(messages[at]!, left);
  if (left >= 0 && tools !== undefined) left = without(tools, left);
  return without(template, left) >= 0;
}

/** A role and a text are counted already, as nearly all messages have nothing else. */
function withoutMessage(message: ChatMessage, left: number): number {
  let rest = left;
  for (const field in message) if (typeof message[field] === "object") rest = without(message[field], rest);
  return rest;
}

/** What is left of `left` once each value in `value` has taken one; looks no further than below 0. */
function without(value: unknown, left: number): number {
  if (typeof value !== "object" || value === null) return left - 1;
  let rest = left - 1;
  if (Array.isArray(value)) {
    for (let at = 0; rest >= 0 && at < value.length; at++) rest = without(value[at], rest);
    return rest;
  }
  for (const field in value) {
    if (rest < 0) break;
    const one = (value as Record<string, unknown>)[field];
    rest = field === "arguments" && typeof one === "string" ? withoutArguments(one, rest) : without(one, rest);
  }
  return rest;
}

/** Arguments of a call come as JSON in a string, which the template is given read. */
function withoutArguments(json: string, left: number): number {
  if (json.length > ARGUMENTS_CHARS_MAX) return -1;
  const scan = new JsonScan(Buffer.from(json), ARGUMENTS_LIMITS);
  scan.advance(Number.POSITIVE_INFINITY);
  return scan.crossed === undefined ? left - scan.values - json.length / ARGUMENTS_CHARS_PER_VALUE : -1;
}
