import { assert } from "#core/base/assert.ts";
import type { Micros } from "#core/base/units.ts";
import { BlockFetches } from "./block-fetches.ts";
import type { EngineConfig } from "./config.ts";
import { DecodeCohort } from "./decode-cohort.ts";
import type { KvCache } from "./kv-cache.ts";
import type { Sequence } from "./sequence.ts";
import type { EngineSink } from "./sink.ts";
import type { Step } from "./step.ts";
import { addDecode, addPrefill } from "./step-time/batch-shape.ts";
import { victimOf } from "./victim.ts";
import { createWaitQueue, type WaitQueue } from "./wait-queue.ts";

/** Times that a request may preempt itself with nobody beside it before it is cut to what the blocks hold. */
export const LONE_TRIES_MAX = 4;

/**
 * vLLM's scheduler: running requests first, in the order of their admission, each getting its next token or chunk while
 * the token budget lasts; then, unless somebody was preempted, the head of the waiting queue for as long as it fits.
 */
export class Scheduler {
  readonly running: Sequence[] = [];
  /** The first ones of those running. */
  readonly cohort: DecodeCohort;
  readonly waiting: WaitQueue;
  readonly fetches: BlockFetches;
  preemptions = 0;
  prefixQueriesTokens = 0;
  prefixHitsTokens = 0;
  tierHitsTokens = 0;
  readonly #config: EngineConfig;
  readonly #kv: KvCache;
  readonly #sink: EngineSink;
  readonly #watermarkBlocks: number;
  #tokensLeft = 0;
  /** Tokens of one request in the step that is composed. */
  #chunkMax = 0;
  /** Submission number of the request that lacked blocks in the last step, or -1, and the releases until then. */
  #blockedOrder = -1;
  #blockedReleases = 0;
  /** Requests that were admitted for the first time. */
  #admissions = 0;

  constructor(config: EngineConfig, kv: KvCache, sink: EngineSink, fetches: BlockFetches) {
    this.#config = config;
    this.fetches = fetches;
    this.#kv = kv;
    this.#sink = sink;
    this.#watermarkBlocks = Math.floor(config.watermark * kv.usable);
    this.cohort = new DecodeCohort(kv, this.running, {
      possible: config.coalesce && config.semantics.completion === "step-end",
      asyncScheduling: config.asyncScheduling,
      caching: config.prefixCaching,
      inTurn: config.semantics.duplicates === "last-writer",
    });
    this.waiting = createWaitQueue(config.scheduler);
  }

  /**
   * Composes a step. Its tokens count as computed and its blocks are taken from now on. A request whose last token is
   * on its way is left out. False where nobody is in it, and nobody could be before something happens: those that wait
   * wait for blocks that are on their way, or held for another engine. `current`: the step that runs meanwhile.
   */
  compose(at: Micros, step: Step, current: Step | undefined): boolean {
    this.#tokensLeft = this.#config.batchTokensMax;
    this.#chunkMax = this.#chunkLimit();
    this.#blockedOrder = -1;
    step.clear();
    this.#composeCohort(at, step, current);
    const preempted = this.#continueRunning(at, step, current);
    if (!preempted) this.#admitWaiting(at, step);
    for (let i = this.cohort.size; i < this.running.length; i++) {
      const sequence = this.running[i] as Sequence;
      if (sequence.inStep) this.#enter(sequence, step);
    }
    return preempted || this.running.length > 0 || this.fetches.fetched.length > 0;
  }

  #composeCohort(at: Micros, step: Step, current: Step | undefined): void {
    const { cohort } = this;
    cohort.join();
    if (!cohort.compose(at, step, this.#tokensLeft)) {
      cohort.breakUp(current, undefined);
      cohort.compose(at, step, this.#tokensLeft);
    }
    this.#tokensLeft -= step.cohort;
  }

  /** Takes the requests that have ended out of the batch, beside the cohort. */
  dropEnded(): void {
    const { running } = this;
    let kept = this.cohort.size;
    for (let i = kept; i < running.length; i++) {
      const sequence = running[i] as Sequence;
      if (sequence.state === "running") running[kept++] = sequence;
    }
    running.length = kept;
  }

  /** True if the last step did not admit this request for want of blocks, and none has been released since. */
  stillBlocked(head: Sequence): boolean {
    return head.order === this.#blockedOrder && this.#kv.releases === this.#blockedReleases;
  }

  /** Writes the request into the step. A prefix hit's first chunk begins where the semantics say. */
  #enter(sequence: Sequence, step: Step): void {
    const tokens = sequence.scheduled;
    const start = sequence.computed - tokens;
    step.members++;
    if (sequence.decoding) addDecode(step.shape, start);
    else if (tokens > 0) {
      const zero = sequence.hitChunk && this.#config.semantics.hitChunkStart === "zero";
      addPrefill(step.shape, zero ? 0 : start, tokens, sequence.tokens);
    }
    sequence.inStep = false;
    sequence.scheduled = 0;
    sequence.hitChunk = false;
    if (sequence.computed < sequence.tokens + sequence.pending) return;
    sequence.pending++;
    sequence.decoding = true;
    step.addYield(sequence);
  }

  #continueRunning(at: Micros, step: Step, current: Step | undefined): boolean {
    const { running } = this;
    const preemptionsBefore = this.preemptions;
    for (let i = this.cohort.size; i < running.length && this.#tokensLeft > 0; i++) {
      const sequence = running[i];
      assert(sequence !== undefined, "a running request exists");
      if (sequence.generated + sequence.pending === sequence.target) continue;
      const tokens = this.#chunk(sequence.tokens + sequence.pending - sequence.computed);
      const lacking = this.#kv.lacking(sequence, sequence.computed + tokens);
      if (lacking > this.#kv.free) {
        this.cohort.breakUp(current, undefined, step);
        const index = this.#makeRoom(sequence, i, lacking, at);
        if (index < 0) break;
        i = index;
      }
      this.#schedule(sequence, tokens, lacking, at);
    }
    return this.preemptions > preemptionsBefore;
  }

  /** Tokens of one request in the next step, its token budget aside. */
  #chunkLimit(): number {
    const { longPrefillTokens, semantics } = this.#config;
    const there = this.running.length + this.waiting.size + this.fetches.holding.size;
    const alone = there <= 1 && semantics.lonePrefill === "whole";
    return longPrefillTokens === 0 || alone ? Infinity : longPrefillTokens;
  }

  /** Tokens of this request in this step, at most `wanted`. */
  #chunk(wanted: number): number {
    const limit = this.#chunkMax < wanted ? this.#chunkMax : wanted;
    return limit < this.#tokensLeft ? limit : this.#tokensLeft;
  }

  #schedule(sequence: Sequence, tokens: number, lacking: number, at: Micros): void {
    sequence.computed += tokens;
    if (this.#config.semantics.duplicates === "last-writer") this.#takeInTurn(sequence, lacking, at);
    else if (lacking > 0) this.#kv.take(sequence, lacking, at);
    sequence.scheduled = tokens;
    sequence.inStep = true;
    this.#tokensLeft -= tokens;
    // What a step on its way will generate is not known yet, and a block is found by what it holds.
    this.#kv.store(sequence, Math.min(sequence.computed, sequence.tokens), at);
  }

  /** Each block is found by its content before the next is taken, which may make it unfindable again. */
  #takeInTurn(sequence: Sequence, lacking: number, at: Micros): void {
    for (let i = 0; i < lacking; i++) {
      const held = (sequence.unclaimed + sequence.blockCount) * this.#kv.blockTokens;
      this.#kv.store(sequence, Math.min(held, sequence.computed), at);
      this.#kv.take(sequence, 1, at);
    }
  }

  /** Preempts until `lacking` blocks are free. Returns the new index of the sequence, or -1 if it had to go itself. */
  #makeRoom(sequence: Sequence, index: number, lacking: number, at: Micros): number {
    let i = index;
    while (lacking > this.#kv.free) {
      const victimIndex = victimOf(this.running, this.#config);
      const victim = this.running[victimIndex];
      assert(victim !== undefined, "a victim runs");
      this.running.splice(victimIndex, 1);
      this.#tokensLeft += victim.scheduled;
      this.#preempt(victim, at);
      if (victim === sequence) {
        if (this.running.length === 0) this.#cut(victim);
        return -1;
      }
      if (victimIndex < i) i--;
    }
    return i;
  }

  /**
   * A request that all blocks do not hold, and that begins anew, may find its prompt whole and take no blocks for it,
   * where a full hit computes nothing. After a few tries it ends where the blocks do, since it would go on so for ever.
   */
  #cut(sequence: Sequence): void {
    if (++sequence.lonePreemptions < LONE_TRIES_MAX) return;
    const heldMax = this.#kv.usable * this.#kv.blockTokens;
    sequence.target = Math.min(sequence.target, heldMax - sequence.request.promptTokens + 1);
  }

  /** Recompute: the blocks go back, the tokens stay (or not, where preemption restarts). */
  #preempt(victim: Sequence, at: Micros): void {
    this.#kv.release(victim, at);
    victim.state = "waiting";
    victim.computed = 0;
    victim.scheduled = 0;
    victim.inStep = false;
    victim.decoding = false;
    victim.hitChunk = false;
    if (this.#config.semantics.preempted === "restarts") {
      victim.generated = 0;
      victim.pending = 0;
      victim.cachedTokens = -1;
    }
    this.waiting.pushPreempted(victim);
    this.preemptions++;
    victim.preemptions++;
    this.#sink.preempted?.(at, victim.request);
  }

  #admitWaiting(at: Micros, step: Step): void {
    const { running, waiting, fetches } = this;
    while (fetches.fetched.length > 0 && running.length < this.#config.sequencesMax && this.#tokensLeft > 0)
      this.#admitFetched(fetches.takeNext(at), at);
    while (waiting.size > 0 && running.length < this.#config.sequencesMax && this.#tokensLeft > 0) {
      if (!this.#admit(waiting.peek(), at, step)) return;
    }
  }

  /** Its prompt has its blocks, so it needs none. */
  #admitFetched(sequence: Sequence, at: Micros): void {
    this.#enterBatch(sequence);
    const tokens = this.#chunk(sequence.tokens - sequence.computed);
    this.#schedule(sequence, tokens, 0, at);
  }

  #enterBatch(sequence: Sequence): void {
    this.running.push(sequence);
    sequence.state = "running";
    if (sequence.admission < 0) sequence.admission = this.#admissions++;
  }

  /** Another engine computed its prompt: room for it is taken now, and it is in the batch when its blocks are here. */
  #fetch(head: Sequence, at: Micros): boolean {
    const { blockTokens } = this.#kv;
    const { promptTokens, hashes, cacheRead } = head.request;
    const hits = this.#kv.lookup(hashes, cacheRead ? Math.floor((promptTokens - 1) / blockTokens) : 0);
    if (!this.#fits(head, hits, Math.ceil(promptTokens / blockTokens) - hits)) return this.#blocked(head);
    this.waiting.shift();
    this.#countAdmission(head, hits * blockTokens, 0, promptTokens, at);
    this.fetches.begin(head, at);
    return true;
  }

  #blocked(head: Sequence): false {
    this.#blockedOrder = head.order;
    this.#blockedReleases = this.#kv.releases;
    return false;
  }

  #admit(head: Sequence, at: Micros, step: Step): boolean {
    if (BlockFetches.isDue(head)) return this.#fetch(head, at);
    const { blockTokens, tier } = this.#kv;
    const { hashes, cacheRead } = head.request;
    const hitTokensMax = cacheRead ? head.tokens - 1 : 0;
    const whole = cacheRead && this.#config.semantics.fullHit === "nothing" ? 1 : 0;
    const hits = this.#kv.lookup(hashes, Math.floor((hitTokensMax + whole) / blockTokens));
    const copies = tier?.following(hashes, hits, Math.floor(hitTokensMax / blockTokens)) ?? 0;
    const hitTokens = (hits + copies) * blockTokens;
    const tokens = this.#chunk(head.tokens - hitTokens);
    const lacking = tokens === 0 ? 0 : Math.ceil((hitTokens + tokens) / blockTokens) - hits;
    if (!this.#config.chunkedPrefill && tokens < Math.min(head.tokens - hitTokens, this.#chunkMax)) return false;
    if (tokens > 0 && !this.#fits(head, hits, lacking)) return this.#blocked(head);

    this.waiting.shift();
    this.#enterBatch(head);
    if (copies > 0) step.transferMicros += tier?.copyBack(hashes, hits, copies, at) ?? 0;
    if (head.cachedTokens < 0) this.#countAdmission(head, hits * blockTokens, copies * blockTokens, hitTokens, at);
    if (tokens > 0) this.#kv.claim(head);
    else {
      head.unclaimed = hits;
      head.cachedBlocks = hits;
    }
    head.computed = hitTokens;
    head.hitChunk = hitTokens > 0;
    this.#schedule(head, tokens, lacking, at);
    return true;
  }

  #fits(head: Sequence, hits: number, lacking: number): boolean {
    const { free, hitFree, blockTokens } = this.#kv;
    let needed = lacking;
    if (this.#config.reserveFullPrompt) needed = Math.max(needed, Math.ceil(head.tokens / blockTokens) - hits);
    const spare = this.running.length > 0 ? this.#watermarkBlocks : 0;
    return needed + hitFree + spare <= free;
  }

  /** `hitTokens` need not be computed: those in the cache, those copied from the second tier, and those fetched. */
  #countAdmission(head: Sequence, gpuTokens: number, tierTokens: number, hitTokens: number, at: Micros): void {
    head.cachedTokens = hitTokens;
    this.prefixQueriesTokens += head.request.promptTokens;
    this.prefixHitsTokens += gpuTokens;
    this.tierHitsTokens += tierTokens;
    this.#sink.admitted?.(at, head.request, hitTokens);
  }
}
