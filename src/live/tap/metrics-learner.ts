import type { EndpointId } from "#core/endpoint/endpoint.ts";
import type { RequestArrived, RequestFinished } from "#core/input/input.ts";
import { UNOBSERVED } from "#core/request/observed-place.ts";
import { type Micros, MICROS_PER_MILLI } from "#core/base/units.ts";
import { nowMicros } from "../base/clock.ts";
import type { EndpointDirectory, EndpointEntry } from "../endpoints/endpoint-directory.ts";
import type { PlaceLearner } from "./attribution.ts";
import { between, type EndsSeen, type EngineCounts } from "./engine-counts.ts";
import type { CountedEnds, EndedRequest } from "./explain-counts.ts";
import { Explainer } from "./explainer.ts";
import type { FollowedInput } from "./front-intake.ts";
import type { HeldIntake } from "./held-intake.ts";

export interface MetricsLearnerOptions {
  readonly held: HeldIntake;
  readonly directory: EndpointDirectory;
  readonly counts: EngineCounts;
  /** Between two looks at the engines, while the place of some request is not known. */
  readonly everyMillis: number;
  readonly failed: (error: unknown) => void;
}

/** What came of requests without a place; each only grows. */
export interface LearnerCounts {
  /** More possibilities than were looked at, more requests than are kept, nothing that fits. */
  readonly unexplained: { possibilities: number; room: number; nothing: number };
}

interface Ended {
  readonly id: string;
  readonly end: RequestFinished;
  readonly arrivedAt: Micros;
  readonly sequences: number;
  /** As its engine counts them: with each answer. */
  readonly promptTokens: number;
}

/** What one engine counted between two looks, less the ends that were found in it, and between which times that happened. */
interface Cell extends Mutable<CountedEnds> {
  readonly endpoint: EndpointId;
  readonly from: Micros;
  readonly to: Micros;
  /** How sure it is that those that were found in it were. */
  trust: number;
  /** What it counted could not be explained: others may be in it, and nobody is found there. */
  spoiled: boolean;
}

type Mutable<T> = { -readonly [K in keyof T]: T[K] };

interface Arrived {
  readonly at: Micros;
  /** NaN where it is estimated. */
  readonly promptTokens: number;
  readonly sequences: number;
  /** To each of its prompts. */
  readonly answersEach: number;
}

/** Requests whose places are open at once. */
const OPEN_MAX = 16_384;
const ENDED_MAX = 4_096;
/** An end is seen here so much later than its engine counts it, or so much earlier, at most. */
const LATE_MICROS = 100 * MICROS_PER_MILLI;
const EARLY_MICROS = 20 * MICROS_PER_MILLI;
/** What a request takes beside its engine, before any was seen; learned from those that are sure. */
const DELAY_MICROS_AT_FIRST = 2_000;
const DELAY_WEIGHT = 0.1;
/** Without the engine's own count, events of the stream were counted: an event may have no token, or several. */
const SLACK_TOKENS = 2;
const SLACK_SHARE = 0.02;
/** Surer than that, a request shows what it takes beside its engine. */
const SURE = 0.99;

/**
 * Learns where requests went from what their engines count, for routers whose answers do not name the engine: the ends of
 * requests, their tokens and their times, as sums between two looks at each page. Looks only while a place is not known.
 */
export class MetricsLearner implements PlaceLearner {
  readonly #options: MetricsLearnerOptions;
  readonly #open = new Map<string, Arrived>();
  #ended: Ended[] = [];
  #cells: Cell[] = [];
  readonly #explainer = new Explainer();
  readonly #last = new Map<EndpointId, EndsSeen>();
  #delayMicros = DELAY_MICROS_AT_FIRST;
  #timer: NodeJS.Timeout | undefined;
  #isLooking = false;
  #isStopped = false;
  readonly counts: LearnerCounts = { unexplained: { possibilities: 0, room: 0, nothing: 0 } };

  constructor(options: MetricsLearnerOptions) {
    this.#options = options;
    // What an engine counted before the first request is where counting begins.
    options.directory.listen({ joined: () => this.#look(), left: ({ id }) => void this.#last.delete(id) });
  }

  arrived({ at, request }: RequestArrived): void {
    if (this.#open.size >= OPEN_MAX) {
      this.counts.unexplained.room++;
      return this.#options.held.placed(request.id, UNOBSERVED);
    }
    const { sequences, tokensByPrompt = [0] } = request;
    const answersEach = sequences / tokensByPrompt.length;
    const promptTokens = request.promptTokensExact ? request.promptTokens : NaN;
    this.#open.set(request.id, { at, promptTokens, sequences, answersEach });
    // What was counted until now is where its end will be counted on.
    this.#look();
  }

  followed(input: FollowedInput): void {
    if (input.kind !== "request-finished") return;
    const open = this.#open.get(input.requestId);
    if (open === undefined) return;
    this.#open.delete(input.requestId);
    const { at: arrivedAt, sequences, answersEach } = open;
    const promptTokens = (input.promptTokens ?? open.promptTokens) * answersEach;
    this.#ended.push({ id: input.requestId, end: input, arrivedAt, sequences, promptTokens });
    if (this.#ended.length > ENDED_MAX) {
      this.counts.unexplained.room++;
      this.#nowhere(this.#ended.shift()!);
    }
    this.#look();
  }

  owns(requestId: string): boolean {
    return this.#open.has(requestId);
  }

  known(requestId: string): void {
    this.#open.delete(requestId);
    const at = this.#ended.findIndex(({ id }) => id === requestId);
    if (at >= 0) this.#ended.splice(at, 1);
  }

  stop(): Promise<unknown> {
    this.#isStopped = true;
    clearTimeout(this.#timer);
    return Promise.all([this.#options.counts.stop(), this.#explainer.stop()]);
  }

  /** Looks at once where it has not looked for long, else when it is due. */
  #look(): void {
    if (this.#isStopped || this.#isLooking || this.#timer !== undefined) return;
    this.#isLooking = true;
    void this.#lookAtAll()
      .catch((error: unknown) => this.#options.failed(error))
      .finally(() => {
        this.#isLooking = false;
        if (this.#isStopped || (this.#open.size === 0 && this.#ended.length === 0)) return;
        this.#timer = setTimeout(() => {
          this.#timer = undefined;
          this.#look();
        }, this.#options.everyMillis);
        this.#timer.unref();
      });
  }

  async #lookAtAll(): Promise<void> {
    const { directory, counts } = this.#options;
    const servers = new Map<string, EndpointEntry[]>();
    for (const entry of directory.all()) servers.set(entry.url, [...(servers.get(entry.url) ?? []), entry]);
    const askedAt = nowMicros();
    await Promise.all(
      [...servers.values()].map(async (entries) => {
        const ranks = await counts.of(entries[0]!);
        if (ranks === undefined) return;
        for (const entry of entries) this.#saw(entry, ranks);
      }),
    );
    await this.#explain(askedAt);
  }

  #saw({ id, dataParallelRank }: EndpointEntry, ranks: ReadonlyMap<string, EndsSeen>): void {
    const seen = dataParallelRank === undefined ? summed([...ranks.values()]) : ranks.get(String(dataParallelRank));
    if (seen === undefined) return;
    const before = this.#last.get(id);
    this.#last.set(id, seen);
    const counted = before && between(before, seen);
    if (counted !== undefined && counted.ends > 0)
      this.#cells.push({ ...counted, endpoint: id, from: before!.askedAt, to: seen.readAt, trust: 1, spoiled: false });
  }

  /** Explains the ends of which all is known: whatever may have counted them was looked at, and whoever else may be in it. */
  async #explain(lookedAt: Micros): Promise<void> {
    const known = (cell: Cell): boolean => cell.to <= lookedAt - LATE_MICROS;
    const isDue = (one: Ended): boolean =>
      one.end.at + EARLY_MICROS <= lookedAt && this.#cells.every((cell) => known(cell) || !mayCount(cell, one));
    const due = this.#ended.filter(isDue);
    if (due.length === 0) return;
    const gone = new Set(due);
    this.#ended = this.#ended.filter((one) => !gone.has(one));
    const open = this.#cells.filter((cell) => known(cell) && !cell.spoiled);
    for (const { cells, ended } of groupsOf(due, open)) await this.#explainGroup(cells, ended);
    const oldest = this.#ended.reduce((least, { end }) => Math.min(least, end.at), lookedAt);
    this.#cells = this.#cells.filter(({ to, ends }) => ends > 0 && to >= oldest - LATE_MICROS);
  }

  async #explainGroup(cells: readonly Cell[], ended: readonly Ended[]): Promise<void> {
    // Some of the counted ends may be of requests that are not due; those may be in later cells as well.
    const others = this.#ended.filter((one) => cells.some((cell) => mayCount(cell, one)));
    const requests = [...ended, ...others].map((one, i): EndedRequest => ({
      sequences: one.sequences,
      promptTokens: one.promptTokens,
      outputTokens: one.end.outputTokens ?? NaN,
      outputSlack: one.end.promptTokens === undefined ? SLACK_TOKENS + SLACK_SHARE * (one.end.outputTokens ?? 0) : 0,
      micros: one.end.at - one.arrivedAt,
      cells: cells.flatMap((cell, c) => (mayCount(cell, one) ? [c] : [])),
      optional: i >= ended.length || one.end.outcome !== "ok" || this.#isSpoiled(one),
    }));
    const { places, cutShort } = await this.#explainer.explain({ requests, cells, delayMicros: this.#delayMicros });
    const { unexplained } = this.counts;
    const trust = cells.reduce((least, cell) => Math.min(least, cell.trust), 1);
    ended.forEach((one, i) => {
      const place = places[i];
      if (place === undefined) {
        unexplained[cutShort ? "possibilities" : "nothing"]++;
        return this.#nowhere(one);
      }
      const cell = cells[place.cell]!;
      const { micros, outputTokens } = requests[i]!;
      const isSingle = one.sequences === 1;
      const sure = place.share * trust;
      if (sure >= SURE && isSingle && cell.ends === 1) this.#learnDelay(micros - cell.micros);
      cell.ends -= one.sequences;
      cell.promptTokens -= one.promptTokens;
      cell.outputTokens -= outputTokens;
      // What several answers took, each of them, nobody here knows.
      cell.micros -= isSingle ? micros - this.#delayMicros : NaN;
      cell.trust = Math.min(cell.trust, sure);
      this.#options.held.placed(one.id, { endpoint: cell.endpoint, by: "metrics", sure });
    });
    if (!cutShort && places.some((place) => place !== undefined)) return;
    for (const cell of cells) if (cell.ends > 0) cell.spoiled = true;
  }

  /** It may be counted where nobody is found any more. */
  #isSpoiled(one: Ended): boolean {
    return this.#cells.some((cell) => cell.spoiled && mayCount(cell, one));
  }

  #learnDelay(micros: Micros): void {
    if (micros >= 0) this.#delayMicros += DELAY_WEIGHT * (micros - this.#delayMicros);
  }

  #nowhere({ id }: Ended): void {
    if (this.#options.held.awaits(id)) this.#options.held.placed(id, UNOBSERVED);
  }
}

/** Whether an end may be counted in a cell. */
function mayCount({ from, to }: Cell, { end, arrivedAt }: Ended): boolean {
  return from <= end.at + EARLY_MICROS && to >= Math.max(arrivedAt, end.at - LATE_MICROS);
}

/** Ends that may be counted in the same cells, and those cells. */
function groupsOf(due: readonly Ended[], cells: readonly Cell[]): { cells: Cell[]; ended: Ended[] }[] {
  const rest = new Set(due);
  return due.flatMap((first) => {
    if (!rest.delete(first)) return [];
    const ended = [first];
    const found = new Set<Cell>();
    for (const one of ended) {
      for (const cell of cells) {
        if (found.has(cell) || !mayCount(cell, one)) continue;
        found.add(cell);
        for (const other of rest) if (mayCount(cell, other) && rest.delete(other)) ended.push(other);
      }
    }
    return [{ cells: [...found], ended }];
  });
}

/** All ranks of a server that balances them itself; undefined where it has none. */
function summed(ranks: readonly EndsSeen[]): EndsSeen | undefined {
  const [first, ...others] = ranks;
  return others.reduce(
    (sum, one) =>
      sum && {
        ...sum,
        ends: sum.ends + one.ends,
        promptTokens: sum.promptTokens + one.promptTokens,
        outputTokens: sum.outputTokens + one.outputTokens,
        micros: sum.micros + one.micros,
      },
    first,
  );
}
