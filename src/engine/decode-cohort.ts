import type { Micros } from "#core/base/units.ts";
import type { KvCache } from "./kv-cache.ts";
import type { Sequence } from "./sequence.ts";
import type { Step } from "./step.ts";

const ROWS_MIN = 64;

/**
 * The leading requests of the batch, as long as each of them computes a token in every step. What they are at is the
 * number of steps that were composed, and of those that were settled, and a row each of what is constant about them; so
 * a step costs what changes in it, blocks and ends, and not a visit to every member. Row i is member i of the batch.
 *
 * A member's own fields stand still meanwhile; `refresh` writes them down. Whatever is none of the ordinary (blocks are
 * short, a client left) breaks the cohort up first, and its members are single ones until the next step takes them in.
 */
export class DecodeCohort {
  /** Rows, those included whose last token is on its way. */
  size = 0;
  /** Rows that the next step to be composed has: none of them has its last token on its way. */
  members = 0;
  /** Number of the last step that was composed, and of the last one settled. */
  composed = 0;
  settled = 0;
  readonly #kv: KvCache;
  readonly #running: readonly Sequence[];
  /** Steps composed before they start: 1 with asynchronous scheduling, else 0. */
  readonly #ahead: 0 | 1;
  /** A step fills a block by computing its last position; composed ahead, its token unknown, the step after it does. */
  readonly #fillsLast: 0 | 1;
  readonly #blockTokens: number;
  readonly #possible: boolean;
  readonly #caching: boolean;
  /** Blocks are found by content before the next is taken. */
  readonly #inTurn: boolean;
  /** Per row: its computed tokens less `composed`; number of its last step; whether it has blocks to be named yet. */
  #bases = new Int32Array(ROWS_MIN);
  #lasts = new Int32Array(ROWS_MIN);
  #naming = new Uint8Array(ROWS_MIN);
  #namingRows = 0;
  /** Of members: the sum of their bases, the greatest, their number by base within a block. */
  #baseSum = 0;
  #baseMax = -Infinity;
  readonly #phases: Int32Array;
  /** The least number of a last step. */
  #lastMin = Infinity;
  /** Of the steps that are planned together: rows by phase, where some have blocks to be named. */
  readonly #phaseStart: Int32Array;
  #byPhase = new Int32Array(ROWS_MIN);

  constructor(kv: KvCache, running: readonly Sequence[], options: CohortOptions) {
    this.#kv = kv;
    this.#running = running;
    this.#ahead = options.asyncScheduling ? 1 : 0;
    this.#fillsLast = options.asyncScheduling ? 0 : 1;
    this.#possible = options.possible;
    this.#caching = options.caching;
    this.#inTurn = options.inTurn;
    this.#blockTokens = kv.blockTokens;
    this.#phases = new Int32Array(kv.blockTokens);
    this.#phaseStart = new Int32Array(kv.blockTokens + 1);
  }

  /** Takes in whoever stands next in the batch and computes a token a step from now on. */
  join(): void {
    const running = this.#running;
    if (!this.#possible) return;
    if (this.size === 0) this.settled = this.composed - this.#ahead;
    for (let row = this.size; row < running.length; row++) {
      const sequence = running[row] as Sequence;
      const left = sequence.target - sequence.generated - this.#ahead;
      if (!sequence.decoding || sequence.pending !== this.#ahead || sequence.leaving || left <= 0) return;
      if (this.#kv.lacking(sequence, sequence.computed) !== 0) return;
      this.#enter(sequence, row, left);
    }
  }

  #enter(sequence: Sequence, row: number, left: number): void {
    if (row === this.#bases.length) this.#grow();
    const base = sequence.computed - this.composed;
    const last = this.composed + left;
    const naming = this.#caching && sequence.cachedBlocks < sequence.knownBlocks ? 1 : 0;
    this.#bases[row] = base;
    this.#lasts[row] = last;
    this.#naming[row] = naming;
    this.#namingRows += naming;
    this.#baseSum += base;
    if (base > this.#baseMax) this.#baseMax = base;
    this.#phases[this.#phaseOf(base)]!++;
    if (last < this.#lastMin) this.#lastMin = last;
    sequence.inCohort = true;
    this.size++;
    this.members++;
  }

  /** Steps that all members will be in. */
  get stepsLeft(): number {
    return this.#lastMin - this.composed;
  }

  /** Tokens before those that the step after `step` others computes, or composed ahead the one before: sum and most. */
  contextTokens(step: number): number {
    return this.#baseSum + this.members * (this.composed - this.#ahead + step);
  }

  contextMaxTokens(step: number): number {
    return this.#baseMax + this.composed - this.#ahead + step;
  }

  /** Blocks that the step composed after `step` others takes. */
  blocksTaken(step: number): number {
    return this.#phases[this.#phaseAt(step, 0)] as number;
  }

  /** Composes a step; false where its blocks or its tokens are not there. Whoever else is in it comes behind. */
  compose(at: Micros, step: Step, tokensMax: number): boolean {
    this.#leaveOut();
    step.number = this.composed + 1;
    const { members, composed } = this;
    if (members === 0) {
      this.composed++;
      return true;
    }
    const taken = this.blocksTaken(0);
    if (members > tokensMax || taken > this.#kv.free) return false;
    if (this.#namingRows > 0) this.#composeRows(at);
    else if (taken > 0) this.#kv.takeBlocks(taken, at);
    const { shape } = step;
    step.cohort = members;
    step.members += members;
    shape.decodeSequences += members;
    shape.decodeContextTokens += this.#baseSum + members * composed;
    const most = this.#baseMax + composed;
    if (most > shape.decodeContextMaxTokens) shape.decodeContextMaxTokens = most;
    this.composed++;
    return true;
  }

  /** Row by row, in the order of the batch, since a block that is taken may be what another one would have been found in. */
  #composeRows(at: Micros): void {
    const { composed } = this;
    const blockTokens = this.#blockTokens;
    for (let row = 0; row < this.size; row++) {
      if ((this.#lasts[row] as number) <= composed) continue;
      const computed = (this.#bases[row] as number) + composed;
      const takes = computed % blockTokens === 0;
      if (takes) {
        if (this.#inTurn) this.#store(row, computed, at);
        this.#kv.takeBlocks(1, at);
      }
      const known = computed + this.#fillsLast;
      if (known % blockTokens === 0) this.#store(row, known, at);
    }
  }

  #store(row: number, tokens: number, at: Micros): void {
    if (this.#naming[row] === 0) return;
    const sequence = this.#running[row] as Sequence;
    this.#kv.store(sequence, tokens, at);
    if (sequence.cachedBlocks < sequence.knownBlocks) return;
    this.#naming[row] = 0;
    this.#namingRows--;
  }

  /** Those whose last token is on its way are in no further step. */
  #leaveOut(): void {
    if (this.#lastMin > this.composed) return;
    let left = 0;
    for (let row = 0; row < this.size; row++) {
      if (this.#lasts[row] !== this.composed) continue;
      this.#subtract(this.#bases[row] as number);
      left++;
    }
    if (left > 0) this.#findMost();
  }

  #subtract(base: number): void {
    this.members--;
    this.#baseSum -= base;
    this.#phases[this.#phaseOf(base)]!--;
  }

  /** The step is settled: whether it was the last one of some. */
  settle(step: Step): boolean {
    this.settled = step.number;
    return this.#lastMin <= step.number;
  }

  /** Whether the step that was settled last is the row's last. */
  isDone(row: number): boolean {
    return (this.#lasts[row] as number) <= this.settled;
  }

  /** Takes out the rows that are done, and their members out of the batch. */
  dropDone(running: Sequence[]): void {
    const { size, settled } = this;
    const bases = this.#bases;
    const lasts = this.#lasts;
    const naming = this.#naming;
    let kept = 0;
    let least = Infinity;
    for (let row = 0; row < size; row++) {
      const last = lasts[row] as number;
      if (last <= settled) {
        // Where steps are composed ahead it was left out of the one after its last.
        if (last >= this.composed) this.#subtract(bases[row] as number);
        this.#namingRows -= naming[row] as number;
        continue;
      }
      if (last < least) least = last;
      if (kept < row) {
        bases[kept] = bases[row] as number;
        lasts[kept] = last;
        naming[kept] = naming[row] as number;
        running[kept] = running[row] as Sequence;
      }
      kept++;
    }
    this.size = kept;
    this.#lastMin = least;
    let left = kept;
    for (let i = size; i < running.length; i++) running[left++] = running[i] as Sequence;
    running.length = left;
    this.#findMost();
  }

  #findMost(): void {
    let most = -Infinity;
    for (let row = 0; row < this.size; row++) {
      const base = this.#bases[row] as number;
      if (base > most && (this.#lasts[row] as number) > this.composed) most = base;
    }
    this.#baseMax = most;
  }

  /** Tokens that a member has. */
  generatedBy(row: number): number {
    return (this.#running[row] as Sequence).target - (this.#lasts[row] as number) + this.settled;
  }

  rowOf(sequence: Sequence): number {
    return this.#running.lastIndexOf(sequence);
  }

  /** Writes down how far a member is. */
  refresh(row: number): void {
    const sequence = this.#running[row] as Sequence;
    const last = this.#lasts[row] as number;
    const composed = last < this.composed ? last : this.composed;
    sequence.computed = (this.#bases[row] as number) + composed;
    sequence.generated = sequence.target - last + this.settled;
    sequence.pending = composed - this.settled;
    sequence.blockCount += this.#kv.lacking(sequence, sequence.computed);
    const full = Math.floor((sequence.computed - this.#ahead) / this.#blockTokens);
    if (this.#caching && full > sequence.cachedBlocks) sequence.cachedBlocks = full;
  }

  refreshAll(): void {
    for (let row = 0; row < this.size; row++) this.refresh(row);
  }

  /**
   * Its members are single ones again. `current` runs, and `next` is composed, where they do: what those bring is theirs
   * singly. In a step that is being composed, as `composing`, their tokens are counted again.
   */
  breakUp(current: Step | undefined, next: Step | undefined, composing?: Step): void {
    const { size } = this;
    if (size === 0) return;
    if (current !== undefined) this.#handOver(current);
    if (next !== undefined) this.#handOver(next);
    // What the step that is composed gives is not on its way yet.
    const inStep = composing === undefined || composing.cohort === 0 ? 0 : 1;
    for (let row = 0; row < size; row++) {
      this.refresh(row);
      const sequence = this.#running[row] as Sequence;
      sequence.inCohort = false;
      if (inStep === 0 || (this.#lasts[row] as number) < this.composed) continue;
      sequence.pending--;
      sequence.scheduled = 1;
      sequence.inStep = true;
    }
    if (composing !== undefined) composing.withoutCohort();
    this.size = 0;
    this.members = 0;
    this.#baseSum = 0;
    this.#baseMax = -Infinity;
    this.#lastMin = Infinity;
    this.#namingRows = 0;
    this.#phases.fill(0);
  }

  /** The step's tokens are those of its rows, one by one. */
  #handOver(step: Step): void {
    const members: Sequence[] = [];
    for (let row = 0; row < this.size && members.length < step.cohort; row++)
      if ((this.#lasts[row] as number) >= step.number) members.push(this.#running[row] as Sequence);
    step.yieldFirst(members);
  }

  /** Of steps computed together `started` were composed beyond the first, and `ended` settled. */
  passed(started: number, ended: number): void {
    this.composed += started;
    this.settled += ended;
  }

  /** Before steps are planned together. */
  beginRun(): void {
    if (this.#namingRows === 0) return;
    const { size } = this;
    if (this.#byPhase.length < size) this.#byPhase = new Int32Array(this.#bases.length);
    const starts = this.#phaseStart;
    starts[0] = 0;
    for (let phase = 0; phase < this.#blockTokens; phase++)
      starts[phase + 1] = (starts[phase] as number) + (this.#phases[phase] as number);
    // Filled backwards, each end becomes its phase's start.
    for (let row = size - 1; row >= 0; row--) {
      const phase = this.#phaseOf(this.#bases[row] as number);
      const end = (starts[phase + 1] as number) - 1;
      starts[phase + 1] = end;
      this.#byPhase[end] = row;
    }
    for (let phase = 0; phase < this.#blockTokens; phase++) starts[phase] = starts[phase + 1] as number;
    starts[this.#blockTokens] = size;
  }

  /** Whether the step after `step` others makes a block of the chain `hashes` hittable at the place that it has there. */
  fills(step: number, hashes: Int32Array): boolean {
    if (this.#namingRows === 0) return false;
    const phase = this.#phaseAt(step, this.#fillsLast);
    const end = this.#phaseStart[phase + 1] as number;
    for (let i = this.#phaseStart[phase] as number; i < end; i++) {
      const row = this.#byPhase[i] as number;
      const known = (this.#bases[row] as number) + this.composed + step + this.#fillsLast;
      const word = 2 * (known / this.#blockTokens - 1);
      const own = (this.#running[row] as Sequence).request.hashes;
      if (word + 1 < hashes.length && own[word] === hashes[word] && own[word + 1] === hashes[word + 1]) return true;
    }
    return false;
  }

  /** Takes and fills the blocks of the step after `step` others of a run, in the order of the batch. */
  composeAfter(step: number, at: Micros): void {
    if (this.#namingRows === 0) {
      const taken = this.blocksTaken(step);
      if (taken > 0) this.#kv.takeBlocks(taken, at);
      return;
    }
    const starts = this.#phaseStart;
    const taking = this.#phaseAt(step, 0);
    const filling = this.#phaseAt(step, this.#fillsLast);
    let take = starts[taking] as number;
    let fill = starts[filling] as number;
    const takeEnd = starts[taking + 1] as number;
    const fillEnd = starts[filling + 1] as number;
    while (take < takeEnd || fill < fillEnd) {
      const taker = take < takeEnd ? (this.#byPhase[take] as number) : this.size;
      const filler = fill < fillEnd ? (this.#byPhase[fill] as number) : this.size;
      if (taker <= filler) {
        this.#kv.takeBlocks(1, at);
        take++;
      } else {
        this.#store(filler, (this.#bases[filler] as number) + this.composed + step + this.#fillsLast, at);
        fill++;
      }
    }
  }

  /** Phase of the rows that after `step` steps compute the first (0) or last (1) position of a block. */
  #phaseAt(step: number, last: 0 | 1): number {
    const past = (this.composed + step + last) % this.#blockTokens;
    return past === 0 ? 0 : this.#blockTokens - past;
  }

  #phaseOf(base: number): number {
    const phase = base % this.#blockTokens;
    return phase < 0 ? phase + this.#blockTokens : phase;
  }

  #grow(): void {
    const rows = 2 * this.#bases.length;
    const [bases, lasts, naming] = [new Int32Array(rows), new Int32Array(rows), new Uint8Array(rows)];
    bases.set(this.#bases);
    lasts.set(this.#lasts);
    naming.set(this.#naming);
    this.#bases = bases;
    this.#lasts = lasts;
    this.#naming = naming;
  }
}

export interface CohortOptions {
  /** Nobody looks at single tokens, and requests end with their last step. */
  readonly possible: boolean;
  readonly asyncScheduling: boolean;
  readonly caching: boolean;
  readonly inTurn: boolean;
}
