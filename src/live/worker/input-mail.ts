import type { Outcome } from "#core/endpoint/outcome.ts";
import { type AskingInput, type Input, isAsking } from "#core/input.ts";
import type { Micros } from "#core/units.ts";
import { MAIL } from "./mail.ts";
import type { MessageReader } from "./message-reader.ts";
import type { MessageWriter } from "./message-writer.ts";

const HASHES = 1;
const FOLLOWS = 2;

/** What the path of a request reports to the router while it goes. */
export function writeInput(to: MessageWriter, input: Exclude<Input, AskingInput>): void {
  switch (input.kind) {
    case "first-token":
      head(to, MAIL.firstToken, input);
      break;
    case "progress":
      head(to, MAIL.progress, input);
      to.number(input.outputTokens);
      break;
    case "request-finished":
      head(to, MAIL.finished, input);
      to.name(input.outcome);
      to.optional(input.promptTokens);
      to.optional(input.cachedTokens);
      to.optional(input.outputTokens);
      answer(to, input.answerHashes, input.answerFollows === true);
      break;
    case "answer-known":
      head(to, MAIL.answerKnown, input);
      answer(to, input.answerHashes, false);
      break;
    default:
      to.begin(MAIL.otherInput);
      writeAny(to, input);
  }
}

/** One of those that are rare, as JSON; its blocks as lists of words. */
export function writeAny(to: MessageWriter, input: Input): void {
  to.text(JSON.stringify(input, (_, value: unknown) => (value instanceof Int32Array ? { words: [...value] } : value)));
}

export function readAny(from: MessageReader, at: (happened: Micros) => Micros): Input {
  const text = from.text();
  const input = JSON.parse(text, (_, value: unknown) =>
    isWords(value) ? Int32Array.from(value.words) : value,
  ) as Input;
  return { ...input, at: at(input.at) };
}

function isWords(value: unknown): value is { readonly words: readonly number[] } {
  return typeof value === "object" && value !== null && "words" in value && Array.isArray(value.words);
}

type WorkerInput = Exclude<Input, AskingInput>;

/** Undefined where the message is no input. `at` makes the router's time of the one at which it happened. */
export function readInput(
  kind: number,
  from: MessageReader,
  at: (happened: Micros) => Micros,
): WorkerInput | undefined {
  switch (kind) {
    case MAIL.firstToken:
      return { kind: "first-token", requestId: from.text(), at: at(from.number()) };
    case MAIL.progress:
      return { kind: "progress", requestId: from.text(), at: at(from.number()), outputTokens: from.number() };
    case MAIL.finished:
      return {
        kind: "request-finished",
        requestId: from.text(),
        at: at(from.number()),
        // Written from an outcome of this program.
        outcome: from.name() as Outcome,
        promptTokens: from.optional(),
        cachedTokens: from.optional(),
        outputTokens: from.optional(),
        ...answerOf(from),
      };
    case MAIL.answerKnown:
      return { kind: "answer-known", requestId: from.text(), at: at(from.number()), ...answerOf(from) };
    case MAIL.otherInput: {
      const input = readAny(from, at);
      if (isAsking(input)) throw new Error(`a worker reports ${input.kind}, which asks`);
      return input;
    }
    default:
      return undefined;
  }
}

function head(to: MessageWriter, kind: number, { requestId, at }: { requestId: string; at: Micros }): void {
  to.begin(kind);
  to.text(requestId);
  to.number(at);
}

function answer(to: MessageWriter, hashes: Int32Array | undefined, follows: boolean): void {
  to.byte((hashes === undefined ? 0 : HASHES) | (follows ? FOLLOWS : 0));
  if (hashes !== undefined) to.words(hashes);
}

function answerOf(from: MessageReader): { answerHashes?: Int32Array; answerFollows?: true } {
  const flags = from.byte();
  return {
    ...((flags & HASHES) !== 0 && { answerHashes: from.words() }),
    ...((flags & FOLLOWS) !== 0 && { answerFollows: true }),
  };
}
