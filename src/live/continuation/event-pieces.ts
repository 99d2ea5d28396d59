import { type Fields, isFields } from "../base/fields.ts";
import type { RepeatedDialect } from "./repeatable-stream.ts";

/** A part of an answer: what it is a part of, and its text. Parts of one name in a row are one part, however they were cut. */
export interface EventPiece {
  readonly name: string;
  readonly text: string;
  /** Has the event state this much of it. */
  readonly keep: (text: string) => void;
}

/** What a stream's event brings of the answer, in order; none where it brings nothing that a client has to have once. */
export function eventPieces(dialect: RepeatedDialect, event: Fields): EventPiece[] {
  switch (dialect) {
    case "chat":
      return [...chatPieces(event), ...endPieces(firstChoice(event)["finish_reason"])];
    case "completions":
      return [...textPieces(firstChoice(event), ["text"]), ...endPieces(firstChoice(event)["finish_reason"])];
    case "messages":
      return messagePieces(event);
    case "responses":
      return responsePieces(event);
  }
}

/** What an event has for each of its tokens: log-probabilities, as OpenAI's chat or completions have them. */
export interface TokenEntries {
  readonly count: number;
  /** Leaves out so many of the first. */
  readonly skip: (count: number) => void;
}

/** None where nothing is stated of single tokens. */
export function tokenEntries(event: Fields): TokenEntries {
  const { logprobs } = firstChoice(event);
  if (!isFields(logprobs)) return NO_ENTRIES;
  const { content, tokens = content } = logprobs;
  const skip = (count: number): void => {
    for (const [name, list] of Object.entries(logprobs))
      if (Array.isArray(list)) (logprobs as Record<string, unknown>)[name] = list.slice(count);
  };
  return Array.isArray(tokens) ? { count: tokens.length, skip } : NO_ENTRIES;
}

const NO_ENTRIES: TokenEntries = { count: 0, skip: () => {} };

/** OpenAI's: the first of its choices, where it has one. */
function firstChoice({ choices }: Fields): Fields {
  const first: unknown = Array.isArray(choices) ? choices[0] : undefined;
  return isFields(first) ? first : {};
}

function chatPieces(event: Fields): EventPiece[] {
  const { delta } = firstChoice(event);
  if (!isFields(delta)) return [];
  const calls: unknown[] = Array.isArray(delta["tool_calls"]) ? delta["tool_calls"] : [];
  return [...textPieces(delta, TEXTS), ...calls.filter(isFields).flatMap(callPieces)];
}

const TEXTS = ["reasoning", "reasoning_content", "content", "refusal"];

/** A call's name comes once, with an id that the engine makes up; its arguments come in pieces. */
function callPieces(call: Fields): EventPiece[] {
  const { index, function: called } = call;
  if (!isFields(called)) return [];
  const pieces = textPieces(called, ["arguments"], `call ${String(index)} `);
  const { name } = called;
  if (typeof name !== "string") return pieces;
  const keep = (text: string): void => {
    if (text !== "") return;
    for (const field of ["id", "type"]) delete (call as Record<string, unknown>)[field];
    delete (called as Record<string, unknown>)["name"];
  };
  return [{ name: `call ${String(index)} name`, text: name, keep }, ...pieces];
}

function textPieces(holder: Fields, names: readonly string[], prefix = ""): EventPiece[] {
  return names.flatMap((name) => {
    const text = holder[name];
    const keep = (kept: string): void => void ((holder as Record<string, unknown>)[name] = kept);
    return typeof text === "string" && text !== "" ? [{ name: prefix + name, text, keep }] : [];
  });
}

const IGNORED = (): void => {};
/** Present once, whatever ids the engine gave it. */
const marker = (name: string, text = "x"): EventPiece => ({ name, text, keep: IGNORED });

/** Why the answer ended, once it has. */
const endPieces = (reason: unknown): EventPiece[] => (typeof reason === "string" ? [marker("end", reason)] : []);

function messagePieces(event: Fields): EventPiece[] {
  const { type, index, delta, content_block: block } = event;
  const of = `block ${String(index)} `;
  if (type === "content_block_start" && isFields(block))
    return [marker(`${of}begins`, `${String(block["type"])} ${String(block["name"])}`)];
  if (type === "message_delta" && isFields(delta)) return endPieces(delta["stop_reason"]);
  if (type === "content_block_stop") return [marker(`${of}ends`)];
  if (type !== "content_block_delta" || !isFields(delta)) return [];
  if (delta["type"] === "signature_delta") return [marker(`${of}signature`)];
  return textPieces(delta, ["text", "thinking", "partial_json"], of);
}

function responsePieces(event: Fields): EventPiece[] {
  const { type, output_index: item, content_index: part } = event;
  if (typeof type !== "string" || !type.startsWith("response.") || WHOLE.has(type)) return [];
  const of = `${String(item)} ${String(part)} ${type} `;
  return type.endsWith(".delta") ? textPieces(event, ["delta"], of) : [marker(of)];
}

/** Events about the whole response. */
const WHOLE = new Set(["response.created", "response.in_progress", "response.completed", "response.incomplete"]);
