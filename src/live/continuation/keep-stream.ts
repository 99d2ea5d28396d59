import type { Exchange } from "../inference/exchange.ts";
import type { ParsedRequest } from "../request/parse-request.ts";
import type { TokenizedPrompt } from "../tokenizer/text/tokenizer.ts";
import { continuationPlan } from "./continuation-plan.ts";
import { KeptStream } from "./kept-stream.ts";
import { fieldsToRepeat } from "./repeatable.ts";
import { RepeatableStream } from "./repeatable-stream.ts";

/**
 * Begins to keep the stream that a request asks for, where it can go on elsewhere should it break; or notes why it cannot.
 * Returns what the engine has to get beside the client's fields: that it sends token ids, or a seed.
 */
export function keepStream(exchange: Exchange, parsed: ParsedRequest, prompt: TokenizedPrompt): object | undefined {
  const { context, limits, route } = exchange;
  if (!context.continuesStreams || limits.continuationsMax === 0) return undefined;
  const { dialect } = route;
  const hold = (bytes: number): boolean => {
    if (bytes > 0 && context.continuationBytes + bytes > limits.continuationBytesKept) return false;
    context.continuationBytes += bytes;
    return true;
  };
  const plan = continuationPlan(parsed, dialect, () => modelTokensMax(exchange));
  if (plan === undefined || typeof plan === "string") {
    const fields = dialect === "other" ? undefined : fieldsToRepeat(parsed, dialect, context.seedsStreams);
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
    ...(context.continuesByText && plan.fitsText
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
function modelTokensMax({ context, model }: Exchange): number | undefined {
  for (const { models } of context.directory.all()) {
    const stated = models.find(({ id }) => id === model)?.["max_model_len"];
    if (typeof stated === "number" && Number.isSafeInteger(stated)) return stated;
  }
  return undefined;
}
