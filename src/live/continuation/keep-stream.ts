import type { Exchange } from "../request/exchange.ts";
import type { ParsedRequest } from "../request/parse-request.ts";
import type { TokenizedPrompt } from "../tokenizer/tokenizer.ts";
import { continuationPlan } from "./continuation-plan.ts";
import { KeptStream } from "./kept-stream.ts";

/**
 * Begins to keep the stream that a request asks for, where it can go on elsewhere should it break; or notes why it cannot.
 * True where the engine is to be asked for token ids that the client did not ask for.
 */
export function keepStream(exchange: Exchange, parsed: ParsedRequest, prompt: TokenizedPrompt): boolean {
  const { context, limits, route } = exchange;
  if (!context.continuesStreams || limits.continuationsMax === 0) return false;
  const plan = continuationPlan(parsed, route.dialect, () => modelTokensMax(exchange));
  if (plan === undefined) {
    if (parsed.stream) exchange.unfit = "route";
    return false;
  }
  if (typeof plan === "string" || prompt.promptTokens > limits.continuationTokensKept) {
    exchange.unfit = typeof plan === "string" ? plan : "long";
    return false;
  }
  exchange.kept = new KeptStream({
    plan,
    ...(context.continuesByText && plan.fitsText
      ? { byText: { promptTokens: prompt.exact ? prompt.promptTokens : 0 } }
      : { byText: undefined }),
    end: prompt.end,
    tokensMax: limits.continuationTokensKept,
    hold: (bytes) => {
      if (bytes > 0 && context.continuationBytes + bytes > limits.continuationBytesKept) return false;
      context.continuationBytes += bytes;
      return true;
    },
  });
  return !plan.showsIds;
}

/** The model's length as some endpoint that serves it states it. */
function modelTokensMax({ context, model }: Exchange): number | undefined {
  for (const { models } of context.directory.all()) {
    const stated = models.find(({ id }) => id === model)?.["max_model_len"];
    if (typeof stated === "number" && Number.isSafeInteger(stated)) return stated;
  }
  return undefined;
}
