import type { WorkloadRequest } from "../workload-request.ts";

/** Makes a workload fit smaller engines than the recorded ones. */
export interface FitOptions {
  /** Factor on prompt lengths and on the tokens that a block id stands for, so that shared prefixes shrink alike. */
  readonly tokenScale: number;
  readonly outputScale: number;
  /** Longest prompt; Infinity for none. */
  readonly inputTokensMax: number;
  readonly outputTokensMax: number;
  /** What becomes of longer prompts: their beginning is kept, or they are left out. */
  readonly oversize: "truncate" | "skip";
  /** Cap on think times, microseconds; Infinity for none. */
  readonly thinkMicrosMax: number;
}

export const FIT_DEFAULTS: FitOptions = {
  tokenScale: 1,
  outputScale: 1,
  inputTokensMax: Number.POSITIVE_INFINITY,
  outputTokensMax: Number.POSITIVE_INFINITY,
  oversize: "truncate",
  thinkMicrosMax: Number.POSITIVE_INFINITY,
};

/** Applies the options to requests, and counts what they changed. */
export class WorkloadFit {
  promptsTruncated = 0;
  promptsSkipped = 0;
  outputsCut = 0;
  thinkTimesCut = 0;
  readonly #options: FitOptions;

  constructor(options: FitOptions) {
    this.#options = options;
  }

  /** The request to send, or undefined for one that is left out. */
  fit(request: WorkloadRequest): WorkloadRequest | undefined {
    const { inputTokensMax, outputScale, thinkMicrosMax } = this.#options;
    const { sequences = 1, tokensByPrompt } = request;
    const outputTokensMax = sequences * this.#options.outputTokensMax;
    const further = (tokensByPrompt ?? []).slice(1).map((tokens) => this.#lengthOf(tokens));
    const scaled = this.#scaled(
      tokensByPrompt === undefined ? request : { ...request, promptTokens: tokensByPrompt[0] ?? 1 },
    );
    const tooLong = Math.max(scaled.promptTokens, ...further) > inputTokensMax;
    if (tooLong && this.#options.oversize === "skip") {
      this.promptsSkipped++;
      return undefined;
    }
    if (tooLong) this.promptsTruncated++;
    const first = scaled.promptTokens > inputTokensMax ? cutPrompt(scaled, inputTokensMax) : scaled;
    const lengths = [first.promptTokens, ...further.map((tokens) => Math.min(tokens, inputTokensMax))];
    const promptTokens = lengths.reduce((sum, tokens) => sum + tokens);
    const wanted = Math.max(1, Math.round(request.outputTokens * outputScale));
    if (wanted > outputTokensMax) this.outputsCut++;
    const think = request.thinkMicros;
    if (think !== undefined && think > thinkMicrosMax) this.thinkTimesCut++;
    return {
      ...first,
      ...(tokensByPrompt && { promptTokens, tokensByPrompt: lengths }),
      outputTokens: Math.min(wanted, outputTokensMax),
      thinkMicros: think === undefined ? undefined : Math.min(think, thinkMicrosMax),
    };
  }

  #lengthOf(tokens: number): number {
    return Math.max(1, Math.round(tokens * this.#options.tokenScale));
  }

  #scaled(request: WorkloadRequest): WorkloadRequest {
    const { tokenScale } = this.#options;
    if (tokenScale === 1) return request;
    const target = this.#lengthOf(request.promptTokens);
    // A prompt whose content is known cannot be stretched or thinned out: its beginning stands for it.
    if (request.text !== undefined || request.tokenIds !== undefined)
      return cutPrompt(request, Math.min(target, request.promptTokens));
    const blockTokens = Math.max(1, Math.round(request.blockTokens * tokenScale));
    const blocks = Math.floor(request.promptTokens / request.blockTokens);
    const rest = Math.round((request.promptTokens - blocks * request.blockTokens) * tokenScale);
    const promptTokens = Math.max(1, blocks * blockTokens + Math.min(rest, blockTokens));
    return { ...request, blockTokens, promptTokens };
  }
}

function cutPrompt(request: WorkloadRequest, promptTokens: number): WorkloadRequest {
  const { blockIds, blockTokens, text, tokenIds } = request;
  return {
    ...request,
    promptTokens,
    blockIds: blockIds?.subarray(0, Math.ceil(promptTokens / blockTokens)),
    text: text?.slice(0, Math.ceil((text.length * promptTokens) / request.promptTokens)),
    tokenIds: tokenIds?.subarray(0, promptTokens),
  };
}
