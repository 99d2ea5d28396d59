import type { Micros } from "#core/base/units.ts";
import type { EngineRequest } from "./request.ts";

/**
 * fetching: its blocks are on their way from another engine. fetched: they are there, and it waits for a place in the
 * batch.
 */
export type SequenceState = "arriving" | "waiting" | "fetching" | "fetched" | "running" | "held" | "ended";

/** A request inside an engine: how far it is and which blocks it holds. Pooled, hence the mutable request. */
export class Sequence {
  request: EngineRequest = NO_REQUEST;
  state: SequenceState = "ended";
  /** Number of the submission, the last resort of every ordering and the identity across pooling. */
  order = -1;
  submittedAt: Micros = 0;
  visibleAt: Micros = 0;
  /** Tokens to generate, the model's length applied. */
  target = 0;
  /** Tokens whose KV is computed or being computed in the step that runs. */
  computed = 0;
  generated = 0;
  /** Tokens that steps on their way will give it. */
  pending = 0;
  /** While a step is composed: its tokens in it, and whether it is in it at all, if with none to compute. */
  scheduled = 0;
  inStep = false;
  /** Computes one token a step, its prompt being done since its last admission. */
  decoding = false;
  /** Of a cohort, which knows how far it is: what stands here of tokens and blocks is older. */
  inCohort = false;
  /** Number of its first admission, which later ones leave as it is; -1 before. */
  admission = -1;
  /** Prompt tokens found in the cache at its first admission; -1 before. */
  cachedTokens = -1;
  /** While a step is composed: its chunk is the first after a prefix hit. */
  hitChunk = false;
  /** Preemptions since its last token. */
  preemptions = 0;
  /** Times that it preempted itself with nobody beside it. */
  lonePreemptions = 0;
  /** Its prompt's blocks were asked for, whether they came or not. */
  wasFetched = false;
  /** The client has gone; leaves when the step that runs has ended. */
  leaving = false;
  /** Blocks held; `unclaimed` leading blocks of the sequence are not among them. */
  blockCount = 0;
  unclaimed = 0;
  /** Leading blocks that were offered to the prefix cache. */
  cachedBlocks = 0;
  /** Leading blocks of the sequence whose content is known. */
  knownBlocks = 0;
  /** Those held that the cache has by their content: extents in order, with the blocks that each had when it was got. */
  namedBlocks = 0;
  extents: Int32Array = new Int32Array(8);
  extentBlocks: Int32Array = new Int32Array(8);
  extentCount = 0;

  reset(request: EngineRequest, order: number, submittedAt: Micros, visibleAt: Micros, target: number): void {
    this.request = request;
    this.state = "arriving";
    this.order = order;
    this.submittedAt = submittedAt;
    this.visibleAt = visibleAt;
    this.target = target;
    this.computed = 0;
    this.generated = 0;
    this.pending = 0;
    this.scheduled = 0;
    this.inStep = false;
    this.decoding = false;
    this.inCohort = false;
    this.admission = -1;
    this.cachedTokens = -1;
    this.hitChunk = false;
    this.preemptions = 0;
    this.lonePreemptions = 0;
    this.wasFetched = false;
    this.leaving = false;
    this.knownBlocks = request.hashes.length >> 1;
    this.clearBlocks();
  }

  /** Tokens that exist: the prompt and what it was given. */
  get tokens(): number {
    return this.request.promptTokens + this.generated;
  }

  /** The last extent that it got; there must be one. */
  get lastExtent(): number {
    return this.extents[this.extentCount - 1] as number;
  }

  pushExtent(extent: number, blocks: number): void {
    if (this.extentCount === this.extents.length) {
      this.extents = grown(this.extents);
      this.extentBlocks = grown(this.extentBlocks);
    }
    this.extents[this.extentCount] = extent;
    this.extentBlocks[this.extentCount++] = blocks;
    this.namedBlocks += blocks;
  }

  /** Its last extent has so many blocks more. */
  growExtent(blocks: number): void {
    this.extentBlocks[this.extentCount - 1]! += blocks;
    this.namedBlocks += blocks;
  }

  /** Holds nothing any more. */
  clearBlocks(): void {
    this.blockCount = 0;
    this.unclaimed = 0;
    this.cachedBlocks = 0;
    this.namedBlocks = 0;
    this.extentCount = 0;
  }
}

function grown(numbers: Int32Array): Int32Array {
  const wide = new Int32Array(2 * numbers.length);
  wide.set(numbers);
  return wide;
}

const NO_REQUEST: EngineRequest = {
  id: "",
  promptTokens: 1,
  outputTokens: 1,
  hashes: new Int32Array(0),
  priority: 0,
  deadlineAt: undefined,
  cacheRead: true,
};
