import { isComplete, textBetween, type SequencesAnswer, type EmulatedSequence } from "../generation/sequence.ts";
import type { ApiError } from "../http/api-error.ts";
import { isOpen, type ServedRequest } from "../http/exchange.ts";
import { sendJson, type HeaderList } from "../http/reply.ts";
import type { AnswerContext } from "./answer-context.ts";
import type { CompletionRequest } from "./completion-request.ts";
import { completionLogprobs, promptLogprobs } from "./logprobs.ts";
import { totalUsage, usageJson } from "./usage.ts";

/** What a completion needs beyond the common context. */
export interface CompletionContext extends AnswerContext {
  readonly request: CompletionRequest;
  /** Text of each sequence's prompt, to echo. */
  readonly promptTexts: readonly string[];
  /** True when the client asked for no token at all: the one that is computed is not shown. */
  readonly promptOnly: boolean;
}

/** A completion as one JSON body, sent when every choice has finished. */
export class CompletionBody implements SequencesAnswer {
  readonly sequences: readonly EmulatedSequence[];
  readonly everyToken = false;
  readonly #exchange: ServedRequest;
  readonly #context: CompletionContext;
  readonly #leading: () => HeaderList;

  constructor(
    exchange: ServedRequest,
    context: CompletionContext,
    sequences: readonly EmulatedSequence[],
    leading: () => HeaderList,
  ) {
    this.sequences = sequences;
    this.#exchange = exchange;
    this.#context = context;
    this.#leading = leading;
  }

  advance(): void {
    if (!isComplete(this) || !isOpen(this.#exchange)) return;
    sendJson(this.#exchange, 200, completionJson(this.#context, this.sequences), this.#leading());
  }

  fail(error: ApiError): void {
    if (isOpen(this.#exchange)) sendJson(this.#exchange, error.code, error.json);
  }
}

function completionJson(context: CompletionContext, sequences: readonly EmulatedSequence[]): string {
  const totals = totalUsage(sequences, context.blockTokens);
  const body = {
    id: context.id,
    object: "text_completion",
    created: context.created,
    model: context.model,
    choices: sequences.map((sequence) => completionChoice(context, sequence)),
    service_tier: null,
    system_fingerprint: context.fingerprint,
    usage: JSON.parse(usageJson("completion", totals, context.promptTokensDetails)) as unknown,
    kv_transfer_params: sequences[0]?.handedOver ?? null,
    ec_transfer_params: null,
    metrics: null,
  };
  return JSON.stringify(body);
}

function completionChoice(context: CompletionContext, sequence: EmulatedSequence): unknown {
  const { request, tokenizer, sampling, promptOnly } = context;
  const { prompt, plan } = sequence;
  const shown = promptOnly ? 0 : sequence.produced;
  const echoed = request.echo ? (context.promptTexts[sequence.choice] ?? "") : "";
  const promptScores = sampling.promptLogprobs ?? (request.echo ? request.logprobs : undefined);
  return {
    index: sequence.choice,
    text: echoed + textBetween(plan, 0, shown),
    logprobs: completionScores(context, sequence, 0, shown),
    finish_reason: sequence.finish ?? null,
    stop_reason: sequence.finish === "stop" ? plan.stopReason : null,
    token_ids: sampling.returnTokenIds ? [...plan.tokens.subarray(0, shown)] : null,
    prompt_logprobs: promptScores === undefined ? null : promptLogprobs(tokenizer, prompt, promptScores),
    prompt_token_ids: sampling.returnTokenIds ? [...prompt] : null,
    routed_experts: null,
  };
}

/** `logprobs` of tokens `from` to `to`; at the beginning of an echoed answer the prompt's tokens come first. */
export function completionScores(
  context: CompletionContext,
  sequence: EmulatedSequence,
  from: number,
  to: number,
): unknown {
  const { request, tokenizer } = context;
  if (request.logprobs === undefined) return null;
  const { prompt, plan } = sequence;
  const echoing = request.echo && from === 0;
  const echoed = request.echo ? (context.promptTexts[sequence.choice] ?? "").length : 0;
  const offset = echoing ? 0 : echoed + textBetween(plan, 0, from).length;
  const tokens = [...(echoing ? prompt : []), ...plan.tokens.subarray(from, to)];
  return completionLogprobs(tokenizer, tokens, request.logprobs, offset, echoing ? 1 : 0);
}
