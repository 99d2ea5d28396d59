import type { GatewayCounters } from "../base/gateway-counters.ts";
import type { GatewayLimits } from "../http/limits.ts";
import { isFields, laxBoolean } from "../base/fields.ts";
import type { ParsedRequest } from "../request/parse-request.ts";
import type { Dialect } from "../http/route.ts";
import type { TokenizedPrompt, Tokenizer } from "../tokenizer/text/tokenizer.ts";
import type { AnswerIndexer } from "./answer-indexer.ts";
import type { AnswerReader } from "./answer-reader.ts";
import { AnswerText } from "./answer-text.ts";
import { AnswerTokens } from "./answer-tokens.ts";

/**
 * Which answers go into the prefix index: those whose ids come back, those too whose text becomes their tokens, or
 * none.
 */
export type AnswersIndexed = "ids" | "text" | "off";

/** What all answers are read with. */
export interface ReaderShared {
  readonly answersIndexed: AnswersIndexed;
  readonly answers: AnswerIndexer;
  readonly limits: GatewayLimits;
  readonly counters: GatewayCounters;
}

/** What of a request decides how its answer may be read. */
export interface Asked {
  readonly parsed: ParsedRequest;
  readonly dialect: Dialect;
  readonly prompt: TokenizedPrompt;
  readonly tokenizer: Tokenizer | undefined;
  /** The gateway asks for the counts of a stream. */
  readonly addsUsage: boolean;
}

/** How the tokens of an answer are to be found out; undefined where they cannot be, or would not continue the prompt. */
export function chooseReader(shared: ReaderShared, asked: Asked): AnswerReader | undefined {
  const { parsed, prompt } = asked;
  const { end } = prompt;
  if (shared.answersIndexed === "off" || parsed.sequences !== 1 || !prompt.exact || end === undefined) return undefined;
  const { limits, counters, answers } = shared;
  if (parsed.answersTokenIds) return new AnswerTokens(end, limits.answerTokensKept, counters);
  const { dialect, tokenizer } = asked;
  if (dialect !== "chat" && dialect !== "completions") return undefined;
  const words = tokenizer?.answerWords;
  if (shared.answersIndexed !== "text" || words === undefined || !isReadable(asked)) return undefined;
  return new AnswerText({
    dialect,
    end,
    promptTokens: prompt.promptTokens,
    words: words.bind(tokenizer),
    bytesMax: limits.answerTokensKept * TEXT_BYTES_PER_TOKEN,
    queue: answers,
    counters,
  });
}

/** Bytes of JSON text kept for each token that may be kept. */
const TEXT_BYTES_PER_TOKEN = 6;

/** The text will be the answer's own, and the engine will count its tokens. */
function isReadable({ parsed: { fields, stream }, addsUsage }: Asked): boolean {
  if (fields === undefined || fields["echo"] === true || fields["use_beam_search"] === true) return false;
  if (!stream || addsUsage) return true;
  const options = fields["stream_options"];
  return isFields(options) && laxBoolean(options["include_usage"]) === true;
}
