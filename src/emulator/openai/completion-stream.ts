import { textBetween, type EmulatedSequence } from "../generation/sequence.ts";
import type { ServedRequest } from "../http/exchange.ts";
import { completionScores, type CompletionContext } from "./completion-body.ts";
import { TokenStream } from "./token-stream.ts";
import { finalUsageJson, runningUsage, totalUsage } from "./usage.ts";

/** A completion as an event stream. */
export class CompletionStream extends TokenStream {
  readonly #context: CompletionContext;
  readonly #head: string;

  constructor(exchange: ServedRequest, context: CompletionContext, sequences: readonly EmulatedSequence[]) {
    super(exchange, sequences);
    this.#context = context;
    const { id, created, model } = context;
    const names = `"id":${JSON.stringify(id)},"object":"text_completion","created":${created}`;
    this.#head = `{${names},"model":${JSON.stringify(model)},"choices":[`;
  }

  protected open(): void {
    // A completion has no opening event: its first event is its first token.
  }

  protected tokens(sequence: EmulatedSequence, from: number, to: number, last: boolean): void {
    const { sampling, includeUsage, fingerprint, promptOnly } = this.#context;
    const { plan, prompt, choice } = sequence;
    const end = promptOnly ? from : to;
    // An echoed stream repeats the prompt's scores and ids, but not its text.
    const text = JSON.stringify(textBetween(plan, from, end));
    const scores = JSON.stringify(completionScores(this.#context, sequence, from, end));
    const promptIds = sampling.returnTokenIds && from === 0 ? `[${prompt.join(",")}]` : "null";
    const ids = sampling.returnTokenIds ? `[${plan.tokens.subarray(from, end).join(",")}]` : "null";
    const finish = last ? `"${sequence.finish ?? "stop"}"` : "null";
    const stop = JSON.stringify(last && sequence.finish === "stop" ? plan.stopReason : null);
    const totals = { promptTokens: prompt.length, completionTokens: to, cachedTokens: 0, createdCacheTokens: 0 };
    const usage = runningUsage("completion", this.#context, totals);
    const mark = last && !includeUsage ? `,"system_fingerprint":${JSON.stringify(fingerprint)}` : "";
    const ending = `"finish_reason":${finish},"stop_reason":${stop}`;
    const choiceJson = `{"index":${choice},"text":${text},"logprobs":${scores},${ending},"prompt_token_ids":${promptIds},"token_ids":${ids}}`;
    this.stream.data(`${this.#head}${choiceJson}]${usage}${mark}}`);
  }

  protected close(): void {
    const { includeUsage, promptTokensDetails, blockTokens, fingerprint } = this.#context;
    if (includeUsage) {
      const usage = finalUsageJson("completion", totalUsage(this.sequences, blockTokens), promptTokensDetails);
      this.stream.data(`${this.#head}],"usage":${usage},"system_fingerprint":${JSON.stringify(fingerprint)}}`);
    }
    this.stream.data("[DONE]");
  }
}
