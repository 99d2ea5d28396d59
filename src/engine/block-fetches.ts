import { assert } from "#core/base/assert.ts";
import type { Micros } from "#core/base/units.ts";
import type { KvCache } from "./kv-cache.ts";
import type { Sequence } from "./sequence.ts";

/**
 * Requests whose prompts another engine computed, as vLLM's connectors fetch them: room for the whole prompt is taken
 * first, then the blocks come while others run, and then the request is admitted ahead of those that wait, to compute
 * its prompt's last token. So whoever holds blocks here never waits for a block.
 */
export class BlockFetches {
  /** Their blocks came; in the order in which they did. */
  readonly fetched: Sequence[] = [];
  readonly #kv: KvCache;
  readonly #sent: (sequence: Sequence, arrivesAt: Micros) => void;
  /** Those that hold blocks and are not in the batch. */
  readonly #holding = new Set<Sequence>();

  /** `sent` has the request come back at a time. */
  constructor(kv: KvCache, sent: (sequence: Sequence, arrivesAt: Micros) => void) {
    this.#kv = kv;
    this.#sent = sent;
  }

  get holding(): ReadonlySet<Sequence> {
    return this.#holding;
  }

  /** Whether it is still to be fetched. */
  static isDue({ request, wasFetched }: Sequence): boolean {
    return request.fetch !== undefined && !wasFetched;
  }

  /** Takes room for the prompt of a request, of which the last lookup found the first blocks, and has the rest come. */
  begin(sequence: Sequence, at: Micros): void {
    const { request } = sequence;
    assert(request.fetch !== undefined, "what is fetched comes from somewhere");
    const hitTokens = this.#kv.hitCount * this.#kv.blockTokens;
    sequence.wasFetched = true;
    this.#kv.claim(sequence);
    this.#kv.take(sequence, this.#kv.lacking(sequence, request.promptTokens), at);
    sequence.computed = hitTokens;
    this.#holding.add(sequence);
    this.#sent(sequence, at + request.fetch.begins(at, request.promptTokens - hitTokens));
  }

  /** The next one is in the batch from now on; what of its prompt is here counts as computed, but for its last token. */
  takeNext(at: Micros): Sequence {
    const sequence = this.fetched.shift();
    assert(sequence !== undefined, "somebody was fetched");
    this.#holding.delete(sequence);
    const { request } = sequence;
    if (request.fetch?.arrived() === true) {
      sequence.computed = request.promptTokens - 1;
      this.#kv.store(sequence, request.promptTokens, at);
    }
    return sequence;
  }

  /** It is gone, if it was here. */
  forget(sequence: Sequence): void {
    if (!this.#holding.delete(sequence) || sequence.state !== "fetched") return;
    this.fetched.splice(this.fetched.indexOf(sequence), 1);
  }
}
