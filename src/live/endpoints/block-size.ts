import type { EndpointId } from "#core/endpoint/endpoint.ts";
import type { Micros } from "#core/base/units.ts";
import type { FaultEvent } from "../log/fault-log.ts";

/** Tokens per block before any engine has reported its own; vLLM's default on a GPU. */
export const BLOCK_TOKENS_DEFAULT = 16;

export interface BlockSizeOptions {
  /** What the operator asked for: a size, or to follow the engines'. */
  readonly configured: number | "engine";
  /** Prompts are to be cut into blocks of this size from now on. */
  readonly change: (blockTokens: number, at: Micros) => void;
  readonly report: (event: FaultEvent) => void;
}

/** What /gnomon/endpoints shows of it. */
export interface BlockSizeView {
  readonly blockTokens: number;
  readonly follows: "engine" | "configuration";
  /** Endpoints whose engines have blocks of another size. */
  readonly differing: readonly EndpointId[];
}

/**
 * Tokens per block of the prompts' chains. Where it follows the engines, the size in force stays while one of the engines
 * that are there has it, and else becomes the smallest of theirs: one that comes or goes changes nothing for the others.
 * An engine of another size is reported once: its expected hits are off by up to a block, and by more where its blocks are
 * the smaller ones.
 */
export class BlockSize {
  readonly #options: BlockSizeOptions;
  readonly #sizes = new Map<EndpointId, number>();
  /** Endpoints whose different size was reported, with that size and the one then in force. */
  readonly #warned = new Map<EndpointId, string>();
  #blockTokens: number;

  constructor(options: BlockSizeOptions) {
    this.#options = options;
    this.#blockTokens = options.configured === "engine" ? BLOCK_TOKENS_DEFAULT : options.configured;
  }

  get blockTokens(): number {
    return this.#blockTokens;
  }

  view(): BlockSizeView {
    return {
      blockTokens: this.#blockTokens,
      follows: this.#options.configured === "engine" ? "engine" : "configuration",
      differing: this.#differing().sort(),
    };
  }

  /** An endpoint's engine reports what its blocks hold, as each scrape does. */
  reported(endpoint: EndpointId, blockTokens: number, at: Micros): void {
    if (this.#sizes.get(endpoint) === blockTokens) return;
    this.#sizes.set(endpoint, blockTokens);
    this.#judge(at);
  }

  gone(endpoint: EndpointId, at: Micros): void {
    this.#warned.delete(endpoint);
    if (this.#sizes.delete(endpoint)) this.#judge(at);
  }

  #judge(at: Micros): void {
    const sizes = [...this.#sizes.values()];
    if (this.#options.configured === "engine" && sizes.length > 0 && !sizes.includes(this.#blockTokens)) {
      const before = this.#blockTokens;
      this.#blockTokens = Math.min(...sizes);
      this.#options.change(this.#blockTokens, at);
      this.#options.report({
        kind: "block-size-changed",
        detail: `engines have blocks of ${this.#blockTokens} tokens`,
        done: `prompts are cut into such blocks, no longer into ones of ${before}; the prefix index starts afresh`,
        figures: { blockTokens: this.#blockTokens },
      });
    }
    for (const endpoint of this.#differing()) this.#warn(endpoint, this.#sizes.get(endpoint)!);
  }

  #differing(): EndpointId[] {
    return [...this.#sizes]
      .filter(([, blockTokens]) => blockTokens !== this.#blockTokens)
      .map(([endpoint]) => endpoint);
  }

  #warn(endpoint: EndpointId, blockTokens: number): void {
    const pair = `${blockTokens} ${this.#blockTokens}`;
    if (this.#warned.get(endpoint) === pair) return;
    this.#warned.set(endpoint, pair);
    const follows = this.#options.configured === "engine";
    this.#options.report({
      kind: "block-size-differs",
      endpoint,
      detail: `its blocks hold ${blockTokens} tokens, prompts are cut into ones of ${this.#blockTokens}`,
      done: follows
        ? "nothing: other engines have that size, and what this one is expected to hold is off by up to a block"
        : "nothing, as prefix.blockTokens fixes it; without it the engines' size is followed",
      figures: { engineBlockTokens: blockTokens, blockTokens: this.#blockTokens },
    });
  }
}
