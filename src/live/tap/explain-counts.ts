/** Requests that ended, as somebody in front of the engines saw them. NaN where a figure is not known. */
export interface EndedRequest {
  /** Answers that it asked for, each of which its engine counts as one that ended. */
  readonly sequences: number;
  /** As its engine counts them: with each answer. */
  readonly promptTokens: number;
  readonly outputTokens: number;
  /** By how much that may be wrong, where nobody but us counted; 0 for the engine's own count. */
  readonly outputSlack: number;
  /** From its arrival to its end. */
  readonly micros: number;
  /** Indexes of the cells in which its end may be counted. */
  readonly cells: readonly number[];
  /** None of its ends need be counted anywhere: its engine failed, or its client left. */
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
  /** There were more possibilities than were looked at: only who is sure by one cell alone has a place. */
  readonly cutShort: boolean;
}

/** Steps of a search, of some 20 ns; a cell that is covered takes as long as some. */
const STEPS_MAX = 200_000;
/** The same of a search for one cell alone. */
const CELL_STEPS_MAX = 100_000;
const SURE = 0.99;
const COVER_STEPS = 16;
/** Beyond so many requests only what explains all of the counts is looked for. */
const STRANGE_REQUESTS_MAX = 6;
/** By how much what a request takes beside its engine differs from the usual, at least. */
const SPREAD_MICROS = 4_000;
/** How unlikely it is that an end is counted of which nobody here knows, or one is counted nowhere. */
const STRANGE = 1e-4;
/** Engines' sums of tokens are whole numbers, read as decimals. */
const TOKENS_OFF = 0.5;

/**
 * Finds out who ended at which engine, by what the engines counted: as many ends, with as many tokens in their prompts and
 * answers, which took as long together. All ways to explain the counts are looked at; a request's share at a place is that
 * of the explanations which have it there, each weighed by how well its times fit. `delayMicros` is what a request takes
 * beside its engine. All answers to one request are looked for in one cell: of those that ended between other looks nobody
 * is found.
 */
export function explainCounts(
  requests: readonly EndedRequest[],
  cells: readonly CountedEnds[],
  delayMicros: number,
): Explanation {
  const exact = new Search(requests, cells, delayMicros, true);
  if (exact.cutShort) return { places: oneByOne(requests, cells, delayMicros), cutShort: true };
  if (exact.found || requests.length > STRANGE_REQUESTS_MAX) return exact.explanation();
  // Somebody else's requests are among the counts, or an end of ours is not.
  return new Search(requests, cells, delayMicros, false).explanation();
}

/** Of all cells together there is too much to look at: those who are sure by one cell's counts alone. */
function oneByOne(
  requests: readonly EndedRequest[],
  cells: readonly CountedEnds[],
  delayMicros: number,
): Explanation["places"] {
  const places: Explanation["places"][number][] = requests.map(() => undefined);
  const order = cells.map((_, c) => c).sort((a, b) => cells[a]!.ends - cells[b]!.ends || a - b);
  for (const cell of order) {
    const free = requests.map((_, i) => i).filter((i) => places[i] === undefined && requests[i]!.cells.includes(cell));
    const some = free.map((i) => ({ ...requests[i]!, cells: [0], optional: true }));
    const search = new Search(some, [cells[cell]!], delayMicros, true, CELL_STEPS_MAX);
    search.explanation().places.forEach((place, k) => {
      if (place !== undefined && place.share >= SURE) places[free[k]!] = { cell, share: place.share };
    });
  }
  return places;
}

/** Covers the cells one after another, each by every choice of requests that fits its counts. */
class Search {
  readonly #requests: readonly EndedRequest[];
  readonly #cells: readonly CountedEnds[];
  readonly #delayMicros: number;
  /** Every end is one of these requests, and every one of these ended in one of the cells. */
  readonly #isExact: boolean;
  /** Cells by how many ends they have: those with one first. */
  readonly #order: readonly number[];
  /** Of each cell, the requests that may be in it, those with long prompts first. */
  readonly #candidates: readonly (readonly number[])[];
  /** Of each request, the place in that order of the last cell that it may be in. */
  readonly #lastTurn: readonly number[];
  readonly #chosen: Int32Array;
  readonly #shares: Float64Array;
  readonly #stepsMax: number;
  #total = 0;
  #steps = 0;

  constructor(
    requests: readonly EndedRequest[],
    cells: readonly CountedEnds[],
    delayMicros: number,
    isExact: boolean,
    stepsMax = STEPS_MAX,
  ) {
    this.#stepsMax = stepsMax;
    this.#requests = requests;
    this.#cells = cells;
    this.#delayMicros = delayMicros;
    this.#isExact = isExact;
    this.#order = cells.map((_, c) => c).sort((a, b) => cells[a]!.ends - cells[b]!.ends || a - b);
    const promptOf = (i: number) => eachPrompt(requests[i]!) || 0;
    const sorted = requests.map((_, i) => i).sort((a, b) => promptOf(b) - promptOf(a) || a - b);
    this.#candidates = cells.map(({ ends }, c) =>
      sorted.filter((i) => requests[i]!.cells.includes(c) && requests[i]!.sequences <= ends),
    );
    this.#lastTurn = requests.map(({ cells: own }) => this.#order.findLastIndex((c) => own.includes(c)));
    this.#chosen = new Int32Array(requests.length).fill(NOWHERE);
    this.#shares = new Float64Array(requests.length * (cells.length + 1));
    this.#cover(0, 1);
  }

  get cutShort(): boolean {
    return this.#steps >= this.#stepsMax;
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
      const own = this.#shares.subarray(i * width, (i + 1) * width);
      const cell = own.indexOf(Math.max(...own));
      return cell === this.#cells.length ? undefined : { cell, share: own[cell]! / this.#total };
    });
  }

  /** Covers the cell whose turn it is, and those behind it. */
  #cover(turn: number, weight: number): void {
    this.#steps += COVER_STEPS;
    if (this.cutShort) return;
    // Whoever may be in no later cell has its place by now.
    for (let i = 0; i < this.#requests.length; i++) {
      const isLeft = this.#chosen[i] === NOWHERE && this.#lastTurn[i]! < turn && !this.#requests[i]!.optional;
      if (isLeft && this.#isExact) return;
    }
    if (turn === this.#order.length) return this.#count(weight);
    const cell = this.#order[turn]!;
    const { ends } = this.#cells[cell]!;
    const free = this.#candidates[cell]!.filter((i) => this.#chosen[i] === NOWHERE);
    const most = free.reduce((sum, i) => sum + this.#requests[i]!.sequences, 0);
    const least = this.#isExact ? ends : 0;
    for (let size = Math.min(ends, most); size >= least; size--) {
      const choice = new Choice(free, size, this.#requests, this.#cells[cell]!);
      this.#choose(choice, 0, size, { turn, cell, weight: weight * STRANGE ** (ends - size) });
    }
  }

  /** Chooses from a place on those who have so many ends together. */
  #choose(choice: Choice, from: number, size: number, at: Turn): void {
    if (size === 0) return this.#chose(choice, at);
    // The last one has to have just the tokens that are left.
    const first = size === 1 && this.#isExact ? choice.firstThatMayEnd(from) : from;
    for (let j = first; choice.endsFrom(j) >= size && j < choice.free.length; j++) {
      if (++this.#steps >= this.#stepsMax) return;
      const fit = choice.fits(j, size, this.#isExact);
      if (fit === "never") return;
      if (fit === "no") continue;
      const i = choice.free[j]!;
      const request = this.#requests[i]!;
      if (request.sequences > size) continue;
      choice.take(request, this.#delayMicros);
      this.#chosen[i] = at.cell;
      this.#choose(choice, j + 1, size - request.sequences, at);
      this.#chosen[i] = NOWHERE;
      choice.giveBack(request, this.#delayMicros);
    }
  }

  /** A choice is whole: it fits what the cell counted, or not. */
  #chose(choice: Choice, { turn, cell, weight }: Turn): void {
    const { ends } = this.#cells[cell]!;
    const isAll = choice.taken === ends;
    if (!choice.isExplained(isAll)) return;
    // Where others have a part in the sums, times show nothing; nor where answers end before their request.
    this.#cover(turn + 1, isAll && choice.isSingle ? weight * this.#timesFit(choice.micros, ends) : weight);
  }

  #timesFit(micros: number, ends: number): number {
    if (ends === 0 || Number.isNaN(micros)) return 1;
    const off = micros / ((SPREAD_MICROS + this.#delayMicros) * Math.sqrt(ends));
    // Never nothing: a request may have waited before its engine.
    return Math.max(1e-9, Math.exp(-0.5 * off * off));
  }

  /** All cells are covered: this explains the counts. */
  #count(given: number): void {
    let weight = given;
    this.#chosen.forEach((cell, i) => {
      if (cell === NOWHERE && !this.#requests[i]!.optional) weight *= STRANGE;
    });
    this.#total += weight;
    const width = this.#cells.length + 1;
    this.#chosen.forEach((cell, i) => {
      this.#shares[i * width + (cell === NOWHERE ? this.#cells.length : cell)]! += weight;
    });
  }
}

const NOWHERE = -1;

interface Turn {
  readonly turn: number;
  readonly cell: number;
  readonly weight: number;
}

/** Requests for one cell as they are chosen, and what of its counts is not explained by them. */
class Choice {
  /** In the order of their prompts, the longest first. */
  readonly free: readonly number[];
  /** Of those that are taken. */
  taken = 0;
  #several = 0;
  micros: number;
  #promptTokens: number;
  #outputTokens: number;
  #slack = 0;
  /** Sums over the first so many ends of `free`; NaN from the first on whose prompt is not known. */
  readonly #prompts: Float64Array;
  /** Of each of `free`, how many ends those before it have; of all last. */
  readonly #before: Int32Array;

  constructor(free: readonly number[], size: number, requests: readonly EndedRequest[], cell: CountedEnds) {
    this.free = free;
    this.micros = cell.micros;
    this.#promptTokens = cell.promptTokens;
    this.#outputTokens = cell.outputTokens;
    this.#before = new Int32Array(free.length + 1);
    free.forEach((i, j) => (this.#before[j + 1] = this.#before[j]! + requests[i]!.sequences));
    this.#prompts = new Float64Array(this.ends + 1);
    if (size === 0) return;
    let end = 0;
    for (const i of free) {
      const each = eachPrompt(requests[i]!);
      for (let k = 0; k < requests[i]!.sequences; k++, end++) this.#prompts[end + 1] = this.#prompts[end]! + each;
    }
  }

  /** Of all that may be chosen. */
  get ends(): number {
    return this.#before[this.free.length]!;
  }

  get isSingle(): boolean {
    return this.#several === 0;
  }

  /** Of those from a place on. */
  endsFrom(j: number): number {
    return this.ends - this.#before[j]!;
  }

  /** Where, from a place on, prompts begin that are short enough to be all that is left. */
  firstThatMayEnd(from: number): number {
    const [sums, before] = [this.#prompts, this.#before];
    const most = this.#promptTokens + TOKENS_OFF;
    let [low, high] = [from, this.free.length];
    if (Number.isNaN(most) || Number.isNaN(sums[this.ends]!)) return from;
    while (low < high) {
      const middle = (low + high) >> 1;
      const end = before[middle]!;
      if (sums[end + 1]! - sums[end]! > most) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /**
   * Whether so many ends, the first of them of free[j] and the others behind it, may have the tokens that are left. never:
   * nor may those that begin later. Comparisons with NaN are false, so that what is not known rules nothing out.
   */
  fits(j: number, size: number, isExact: boolean): "maybe" | "no" | "never" {
    const sums = this.#prompts;
    const { ends } = this;
    const [end, next] = [this.#before[j]!, this.#before[j + 1]!];
    const left = this.#promptTokens;
    if (isExact && sums[end + size]! - sums[end]! < left - TOKENS_OFF) return "never";
    if (sums[ends]! - sums[ends - size]! > left + TOKENS_OFF) return "never";
    if (sums[next]! - sums[end]! > left + TOKENS_OFF) return "no";
    return this.#outputTokens < -TOKENS_OFF - this.#slack ? "never" : "maybe";
  }

  take({ sequences, promptTokens, outputTokens, outputSlack, micros }: EndedRequest, delayMicros: number): void {
    this.taken += sequences;
    if (sequences > 1) this.#several++;
    this.#promptTokens -= promptTokens;
    this.#outputTokens -= outputTokens;
    this.#slack += outputSlack;
    this.micros -= micros - delayMicros;
  }

  giveBack({ sequences, promptTokens, outputTokens, outputSlack, micros }: EndedRequest, delayMicros: number): void {
    this.taken -= sequences;
    if (sequences > 1) this.#several--;
    this.#promptTokens += promptTokens;
    this.#outputTokens += outputTokens;
    this.#slack -= outputSlack;
    this.micros += micros - delayMicros;
  }

  /** Whether the tokens are those of the choice; or are enough for it, where it is not `all`. */
  isExplained(all: boolean): boolean {
    const off = TOKENS_OFF + this.#slack;
    if (this.#promptTokens < -TOKENS_OFF || this.#outputTokens < -off) return false;
    return !all || !(this.#promptTokens > TOKENS_OFF || this.#outputTokens > off);
  }
}

/** Of one of its answers. */
function eachPrompt({ promptTokens, sequences }: EndedRequest): number {
  return promptTokens / sequences;
}
