import type { AnswerReader, AnswerReport } from "../answer/answer-reader.ts";
import type { Usage } from "../answer/usage.ts";
import type { AnswersIndexed } from "../answer/choose-reader.ts";
import { countUp, type GatewayCounters } from "../base/gateway-counters.ts";
import type { ClientRequest } from "../request/client-request.ts";
import type { StreamKeeping } from "./keep-stream.ts";

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
