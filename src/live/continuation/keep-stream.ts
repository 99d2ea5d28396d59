import type { EndpointDirectory } from "../endpoints/endpoint-directory.ts";
import type { ClientRequest } from "../request/client-request.ts";
import type { ParsedRequest } from "../request/parse-request.ts";
import type { TokenizedPrompt } from "../tokenizer/text/tokenizer.ts";
import { continuationPlan } from "./continuation-plan.ts";
import { KeptStream, type UnfitStream } from "./kept-stream.ts";
import { fieldsToRepeat, RepeatableStream } from "./repeatable-stream.ts";
import type { AnswerReader, AnswerReport } from "../answer/answer-reader.ts";
import type { Usage } from "../answer/answer-json.ts";
import type { AnswersIndexed } from "../answer/choose-reader.ts";
import { countUp, type GatewayCounters } from "../base/gateway-counters.ts";

/** What is kept of a request's stream so that it can go on elsewhere, or why nothing is. */
export interface StreamKeeping {
  kept: KeptStream | undefined;
  /** The same of one that another engine would make again. */
  repeatable: RepeatableStream | undefined;
  unfit: UnfitStream | undefined;
}

/** What requests share whose streams are kept. */
export interface KeepingParts {
  readonly directory: Pick<EndpointDirectory, "all">;
  /** Keeps the tokens of streams, so that one that breaks can go on at another endpoint. */
  readonly continuesStreams: boolean;
  /** Where an engine sends no ids of them, one goes on behind its text. */
  readonly continuesByText: boolean;
  /** Gives a seed to streams that could go on no other way. */
  readonly seedsStreams: boolean;
  /** What these take. */
  continuationBytes: number;
}

interface KeepableRequest extends StreamKeeping, Pick<ClientRequest, "limits" | "route" | "model"> {
  readonly shared: KeepingParts;
}

/**
 * Begins to keep the stream that a request asks for, where it can go on elsewhere should it break; or notes why it cannot.
 * Returns what the engine has to get beside the client's fields: that it sends token ids, or a seed.
 */
export function keepStream(
  exchange: KeepableRequest,
  parsed: ParsedRequest,
  prompt: TokenizedPrompt,
): object | undefined {
  const { shared, limits, route } = exchange;
  if (!shared.continuesStreams || limits.continuationsMax === 0) return undefined;
  const { dialect } = route;
  const hold = (bytes: number): boolean => {
    if (bytes > 0 && shared.continuationBytes + bytes > limits.continuationBytesKept) return false;
    shared.continuationBytes += bytes;
    return true;
  };
  const plan = continuationPlan(parsed, dialect, () => modelTokensMax(exchange));
  if (plan === undefined || typeof plan === "string") {
    const fields = dialect === "other" ? undefined : fieldsToRepeat(parsed, dialect, shared.seedsStreams);
    if (fields !== undefined && dialect !== "other") {
      const textMax = limits.continuationTokensKept * UNITS_PER_TOKEN;
      exchange.repeatable = new RepeatableStream({ dialect, textMax, hold });
    } else if (parsed.stream) exchange.unfit = plan ?? (dialect === "other" ? "route" : "sampled");
    return fields !== undefined && Object.keys(fields).length > 0 ? fields : undefined;
  }
  if (prompt.promptTokens > limits.continuationTokensKept) {
    exchange.unfit = "long";
    return undefined;
  }
  exchange.kept = new KeptStream({
    plan,
    ...(shared.continuesByText && plan.fitsText
      ? { byText: { promptTokens: prompt.exact ? prompt.promptTokens : 0 } }
      : { byText: undefined }),
    end: prompt.end,
    tokensMax: limits.continuationTokensKept,
    hold,
  });
  return plan.showsIds ? undefined : { return_token_ids: true };
}

/** Of text that is kept of an answer, for each token that may be. */
const UNITS_PER_TOKEN = 6;

/** The model's length as some endpoint that serves it states it. */
function modelTokensMax({ shared, model }: KeepableRequest): number | undefined {
  for (const { models } of shared.directory.all()) {
    const stated = models.find(({ id }) => id === model)?.["max_model_len"];
    if (typeof stated === "number" && Number.isSafeInteger(stated)) return stated;
  }
  return undefined;
}

interface EndedRequest extends Pick<ClientRequest, "prompt">, Pick<StreamKeeping, "kept"> {
  readonly answerReader: AnswerReader | undefined;
  readonly shared: { readonly answersIndexed: AnswersIndexed; readonly counters: GatewayCounters };
}

/**
 * What the end of a request reports of an answer whose tokens were kept: the blocks that they fill behind the prompt's.
 * Undefined where whoever reads the answer for the prefix index finds them out, or they are not the engine's own.
 */
export function keptAnswer({ kept, shared, prompt, answerReader }: EndedRequest, usage: Usage | undefined) {
  if (kept === undefined || kept.text !== undefined || kept.promptTokens !== prompt.promptTokens) return undefined;
  const { answersIndexed, counters } = shared;
  const isKnown = kept.continuations > 0 || (answersIndexed !== "off" && answerReader === undefined);
  if (!isKnown || usage?.outputTokens !== kept.outputTokens) return undefined;
  const report: AnswerReport = kept.answer();
  if (report.answerHashes !== undefined) countUp(counters.answersKnown, "ids");
  return report;
}
