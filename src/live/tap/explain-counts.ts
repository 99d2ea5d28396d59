/** Requests that ended, as somebody in front of the engines saw them. NaN where a figure is not known. */
export interface EndedRequest {
  readonly promptTokens: number;
  readonly outputTokens: number;
  /** By how much that may be wrong, where nobody but us counted; 0 for the engine's own count. */
  readonly outputSlack: number;
  /** From its arrival to its end. */
  readonly micros: number;
  /** Indexes of the cells in which its end may be counted. */
  readonly cells: readonly number[];
  /** Its end need not be counted anywhere: its engine failed, or its client left. */
  readonly optional: boolean;
}

/** What one engine counted between two looks: ends, and sums over them. NaN where it does not count that. */
export interface CountedEnds {
  readonly ends: number;
  readonly promptTokens: number;
  readonly outputTokens: number;
  readonly micros: number;
}

/** Where each request was, as far as the counts say; none of a request where nothing fits, or too much does. */
export interface Explanation {
  /** By request, the likeliest cell and its share of all that fits; undefined where none is known. */
  readonly places: readonly ({ readonly cell: number; readonly share: number } | undefined)[];
  /** There were more possibilities than were looked at. */
  readonly cutShort: boolean;
}

/** Steps of a search. */
const STEPS_MAX = 20_000;
/** Of what a request takes at its engine and what it took before it, for each request of a cell. */
const SPREAD_MICROS = 4_000;
/** How unlikely it is that an end is counted of which nobody here knows, or one is counted nowhere. */
const STRANGE = 1e-4;
/** Engines' sums of tokens are whole numbers, read as decimals. */
const TOKENS_OFF = 0.5;

/**
 * Finds out who ended at which engine, by what the engines counted: as many ends, with as many tokens in their prompts and
 * answers, which took as long together. All ways to explain the counts are looked at; a request's share at a place is that
 * of the explanations which have it there, each weighed by how well its times fit. `delayMicros` is what a request takes
 * beside its engine.
 */
export function explainCounts(
  requests: readonly EndedRequest[],
  cells: readonly CountedEnds[],
  delayMicros: number,
): Explanation {
  const exact = new Search(requests, cells, delayMicros, true);
  if (exact.found || exact.cutShort) return exact.explanation();
  // Somebody else's requests are among the counts, or an end of ours is not.
  return new Search(requests, cells, delayMicros, false).explanation();
}

class Search {
  readonly #requests: readonly EndedRequest[];
  readonly #cells: readonly CountedEnds[];
  readonly #delayMicros: number;
  /** Every end is one of these requests, and every one of these ended in one of the cells. */
  readonly #isExact: boolean;
  readonly #prompts: Bounds;
  readonly #outputs: Bounds;
  readonly #slackMax: number;
  /** Requests by how few places they may have, and how much they weigh there: those with one first. */
  readonly #order: readonly number[];
  readonly #chosen: Int32Array;
  readonly #left: Rest[];
  readonly #shares: Float64Array;
  #endsLeft: number;
  #total = 0;
  #steps = 0;

  constructor(requests: readonly EndedRequest[], cells: readonly CountedEnds[], delayMicros: number, isExact: boolean) {
    this.#requests = requests;
    this.#cells = cells;
    this.#delayMicros = delayMicros;
    this.#isExact = isExact;
    this.#prompts = boundsOf(requests.map(({ promptTokens }) => promptTokens));
    this.#outputs = boundsOf(requests.map(({ outputTokens }) => outputTokens));
    this.#slackMax = Math.max(0, ...requests.map(({ outputSlack }) => outputSlack));
    const weightOf = (i: number) => (requests[i]!.promptTokens || 0) + (requests[i]!.outputTokens || 0);
    const order = requests.map((_, i) => i);
    this.#order = order.sort(
      (a, b) => requests[a]!.cells.length - requests[b]!.cells.length || weightOf(b) - weightOf(a) || a - b,
    );
    this.#chosen = new Int32Array(requests.length).fill(NOWHERE);
    this.#left = cells.map((cell) => ({ ...cell, outputSlack: 0 }));
    this.#shares = new Float64Array(requests.length * (cells.length + 1));
    this.#endsLeft = cells.reduce((sum, { ends }) => sum + ends, 0);
    this.#place(0, 1);
  }

  get cutShort(): boolean {
    return this.#steps >= STEPS_MAX;
  }

  get found(): boolean {
    return this.#total > 0;
  }

  explanation(): Explanation {
    return { places: this.#places(), cutShort: this.cutShort };
  }

  #places(): Explanation["places"] {
    const width = this.#cells.length + 1;
    return this.#requests.map((_, i) => {
      if (this.#total === 0 || this.cutShort) return undefined;
      let cell = NOWHERE;
      for (let c = 0; c < this.#cells.length; c++) {
        const best = cell === NOWHERE ? this.#shares[i * width + this.#cells.length]! : this.#shares[i * width + cell]!;
        if (this.#shares[i * width + c]! > best) cell = c;
      }
      return cell === NOWHERE ? undefined : { cell, share: this.#shares[i * width + cell]! / this.#total };
    });
  }

  /** Tries every place of the request that is next, and then those behind it. */
  #place(depth: number, weight: number): void {
    if (++this.#steps >= STEPS_MAX) return;
    if (depth === this.#order.length) return this.#count(weight);
    if (this.#isExact && this.#endsLeft > this.#order.length - depth) return;
    const request = this.#order[depth]!;
    const { cells, promptTokens, outputTokens, outputSlack, micros, optional } = this.#requests[request]!;
    for (const cell of cells) {
      const left = this.#left[cell]!;
      if (left.ends < 1 || left.promptTokens < promptTokens - TOKENS_OFF) continue;
      if (left.outputTokens + left.outputSlack < outputTokens - outputSlack - TOKENS_OFF) continue;
      const before = { ...left };
      left.ends--;
      // What is not known makes NaN of the sum, which then binds nothing.
      left.promptTokens -= promptTokens;
      left.outputTokens -= outputTokens;
      left.outputSlack += outputSlack;
      left.micros -= micros - this.#delayMicros;
      this.#endsLeft--;
      this.#chosen[request] = cell;
      if (this.#canBeFilled(cell)) this.#place(depth + 1, weight);
      this.#endsLeft++;
      this.#left[cell] = before;
    }
    this.#chosen[request] = NOWHERE;
    if (optional) this.#place(depth + 1, weight);
    else if (!this.#isExact) this.#place(depth + 1, weight * STRANGE);
  }

  /** Whether what is left of a cell can be so many of these requests. */
  #canBeFilled(cell: number): boolean {
    if (!this.#isExact) return true;
    const { ends, promptTokens, outputTokens, outputSlack } = this.#left[cell]!;
    return (
      isWithin(promptTokens, ends, this.#prompts, 0) &&
      isWithin(outputTokens, ends, this.#outputs, outputSlack + ends * this.#slackMax)
    );
  }

  /** All requests have a place: this explains the counts, well or badly. */
  #count(given: number): void {
    let weight = given;
    for (let c = 0; c < this.#left.length && weight > 0; c++) weight *= this.#fit(c);
    if (weight <= 0) return;
    this.#total += weight;
    const width = this.#cells.length + 1;
    this.#chosen.forEach((cell, i) => {
      this.#shares[i * width + (cell === NOWHERE ? this.#cells.length : cell)]! += weight;
    });
  }

  #fit(c: number): number {
    const { ends, promptTokens, outputTokens, outputSlack, micros } = this.#left[c]!;
    // Others have a part in its sums.
    if (ends > 0) return STRANGE ** ends;
    if (Math.abs(promptTokens) > TOKENS_OFF || Math.abs(outputTokens) > TOKENS_OFF + outputSlack) return 0;
    const counted = this.#cells[c]!.ends;
    if (counted === 0 || Number.isNaN(micros)) return 1;
    const off = micros / (SPREAD_MICROS * Math.sqrt(counted));
    // Never nothing: a request may have waited before its engine.
    return Math.max(1e-9, Math.exp(-0.5 * off * off));
  }
}

const NOWHERE = -1;

interface Bounds {
  readonly min: number;
  readonly max: number;
}

/** NaN among the figures makes NaN of the bounds, which bound nothing. */
function boundsOf(figures: readonly number[]): Bounds {
  return { min: Math.min(...figures), max: Math.max(...figures) };
}

function isWithin(sum: number, ends: number, { min, max }: Bounds, slack: number): boolean {
  return !(sum < ends * min - TOKENS_OFF - slack || sum > ends * max + TOKENS_OFF + slack);
}

/** What of a cell is not explained yet, and by how much its tokens may be off. */
interface Rest {
  ends: number;
  promptTokens: number;
  outputTokens: number;
  outputSlack: number;
  micros: number;
}
