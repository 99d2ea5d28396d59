import { TimeHistogram } from "#core/rollout/judge/time-histogram.ts";
import { MICROS_PER_MILLI } from "#core/base/units.ts";
import type { EndpointTraffic, TrafficCard, RecentTrafficFigures, TrafficSlot } from "#page/status/overview.ts";
import type { TimeFigures } from "#page/status/time-figures.ts";
import type { FaultEvent, FaultKind } from "../log/fault-log.ts";
import type { RequestSummary } from "../log/request-summary.ts";

/** Length of what becomes one point of a line. */
const SLOT_MILLIS = 5_000;
/** Slots that are remembered: a quarter of an hour. */
const SLOTS_MAX = 180;
/** Slots whose times are kept one by one, for figures over all of them. */
const DETAILED_MAX = 12;

interface Times {
  readonly ttft: TimeHistogram;
  readonly tpot: TimeHistogram;
  readonly e2e: TimeHistogram;
}

interface Counts {
  requests: number;
  failed: number;
  refused: number;
  aborted: number;
  outputTokens: number;
  /** Of requests whose cached tokens are known. */
  promptTokens: number;
  cachedTokens: number;
}

interface Sums {
  readonly counts: Counts;
  readonly times: Times;
}

interface Slot {
  readonly slot: number;
  /** Of each model by itself; together they are all of the slot. */
  readonly models: Map<string, Sums>;
  /** Of each endpoint by itself. */
  readonly endpoints: Map<string, EndpointSums>;
}

interface EndpointSums {
  requests: number;
  failedAttempts: number;
  /** Of requests whose cached tokens are known. */
  promptTokens: number;
  cachedTokens: number;
  expectedTokens: number;
  readonly ttft: TimeHistogram;
}

/** Of a request that had an endpoint and lost it there. */
const FAILED: ReadonlySet<FaultKind> = new Set(["attempt-failed", "answer-cut", "stream-continued"]);
/** Endpoints with figures of their own in a slot. */
const ENDPOINTS_MAX = 1_024;

/** Models with figures of their own in a slot, and that are shown; the others are one. */
const MODELS_MAX = 16;
const OTHERS = "other models";

/** What requests did over the last minutes, in slots of some seconds. It holds no more than a fixed number of them. */
export class RecentTraffic {
  readonly #now: () => number;
  readonly #startedAt: number;
  /** Oldest first; the last one is being filled. */
  readonly #detailed: Slot[] = [];
  readonly #closed: TrafficSlot[] = [];

  /** `now` in milliseconds since 1970. */
  constructor(now: () => number = Date.now) {
    this.#now = now;
    this.#startedAt = now();
  }

  /** As of RequestObserver. */
  finished(summary: RequestSummary): void {
    const { models } = this.#open();
    const model = models.has(summary.model) || models.size < MODELS_MAX ? summary.model : OTHERS;
    let own = models.get(model);
    if (own === undefined) models.set(model, (own = newSums()));
    count(own, summary);
    if (summary.endpoint !== "") countAt(this.#endpoint(summary.endpoint), summary);
  }

  /** As of RequestObserver. */
  fault({ kind, endpoint }: FaultEvent): void {
    const sums = endpoint === undefined || !FAILED.has(kind) ? undefined : this.#endpoint(endpoint);
    if (sums !== undefined) sums.failedAttempts++;
  }

  /** What each endpoint did in the last minute, by its id. */
  endpoints(): ReadonlyMap<string, EndpointTraffic> {
    this.#open();
    const all = new Map<string, EndpointSums>();
    for (const { endpoints } of this.#detailed) {
      for (const [id, sums] of endpoints) {
        const known = all.get(id);
        if (known === undefined) all.set(id, addedAt(newEndpointSums(), sums));
        else addedAt(known, sums);
      }
    }
    return new Map([...all].map(([id, sums]) => [id, endpointTraffic(sums)]));
  }

  /** Undefined where the slot has as many as it may have. */
  #endpoint(id: string): EndpointSums | undefined {
    const { endpoints } = this.#open();
    let own = endpoints.get(id);
    if (own === undefined && endpoints.size < ENDPOINTS_MAX) endpoints.set(id, (own = newEndpointSums()));
    return own;
  }

  /** Slots after `after`, and the last minute. */
  view(after: number): TrafficCard {
    this.#open();
    const slots = [...this.#closed, ...this.#detailed.map(slotOf)];
    const all = newSums();
    const models = new Map<string, Sums>();
    for (const slot of this.#detailed) {
      for (const [model, sums] of slot.models) {
        addTo(all, sums);
        if (!models.has(model)) models.set(model, newSums());
        addTo(models.get(model)!, sums);
      }
    }
    return {
      slotMillis: SLOT_MILLIS,
      slotsMax: SLOTS_MAX,
      slots: slots.filter(({ slot }) => slot > after),
      lastMinute: { ...figuresOf(all), seconds: this.#detailedSeconds() },
      models: [...models]
        .map(([model, sums]) => ({ model, ...figuresOf(sums) }))
        .sort((x, y) => y.requests - x.requests || (x.model < y.model ? -1 : 1))
        .slice(0, MODELS_MAX),
    };
  }

  /** Time that the slots kept one by one span until now. */
  #detailedSeconds(): number {
    const since = Math.max(this.#startedAt, this.#detailed[0]!.slot * SLOT_MILLIS);
    return Math.max(1, (this.#now() - since) / 1_000);
  }

  /** The slot that it is in now; those since the last one are there and empty. */
  #open(): Slot {
    const slot = Math.floor(this.#now() / SLOT_MILLIS);
    let last = this.#detailed.at(-1);
    // A clock that was set back fills the slot that there is.
    if (last !== undefined && slot <= last.slot) return last;
    const first = Math.max(last === undefined ? slot : last.slot + 1, slot - SLOTS_MAX + 1);
    for (let next = first; next <= slot; next++) {
      last = { slot: next, models: new Map(), endpoints: new Map() };
      this.#detailed.push(last);
      while (this.#detailed.length > DETAILED_MAX) this.#closed.push(slotOf(this.#detailed.shift()!));
    }
    this.#closed.splice(0, this.#closed.length + this.#detailed.length - SLOTS_MAX);
    return last!;
  }
}

function newSums(): Sums {
  return {
    counts: { requests: 0, failed: 0, refused: 0, aborted: 0, outputTokens: 0, promptTokens: 0, cachedTokens: 0 },
    times: { ttft: new TimeHistogram(), tpot: new TimeHistogram(), e2e: new TimeHistogram() },
  };
}

function count({ counts, times }: Sums, summary: RequestSummary): void {
  const { outcome, ttftMicros, tpotMicros, e2eMicros } = summary;
  counts.requests++;
  if (outcome === "failed" || outcome === "timeout") counts.failed++;
  if (outcome === "refused") counts.refused++;
  if (outcome === "aborted") counts.aborted++;
  counts.outputTokens += summary.outputTokens ?? 0;
  if (summary.cachedTokens !== undefined) {
    counts.cachedTokens += summary.cachedTokens;
    counts.promptTokens += summary.promptTokens ?? 0;
  }
  // Of an answer that is not streamed, nobody knows when its first token came.
  if (ttftMicros !== undefined && summary.stream) times.ttft.add(ttftMicros);
  if (tpotMicros !== undefined) times.tpot.add(tpotMicros);
  if (outcome === "ok") times.e2e.add(e2eMicros);
}

function newEndpointSums(): EndpointSums {
  const none = { requests: 0, failedAttempts: 0, promptTokens: 0, cachedTokens: 0, expectedTokens: 0 };
  return { ...none, ttft: new TimeHistogram() };
}

function countAt(sums: EndpointSums | undefined, summary: RequestSummary): void {
  if (sums === undefined) return;
  sums.requests++;
  if (summary.cachedTokens !== undefined) {
    sums.promptTokens += summary.promptTokens ?? 0;
    sums.cachedTokens += summary.cachedTokens;
    sums.expectedTokens += summary.hitTokens;
  }
  if (summary.ttftMicros !== undefined && summary.stream) sums.ttft.add(summary.ttftMicros);
}

function addedAt(sums: EndpointSums, more: EndpointSums): EndpointSums {
  sums.requests += more.requests;
  sums.failedAttempts += more.failedAttempts;
  sums.promptTokens += more.promptTokens;
  sums.cachedTokens += more.cachedTokens;
  sums.expectedTokens += more.expectedTokens;
  sums.ttft.merge(more.ttft);
  return sums;
}

function endpointTraffic(sums: EndpointSums): EndpointTraffic {
  const { requests, failedAttempts, promptTokens, cachedTokens, expectedTokens, ttft } = sums;
  const share = (tokens: number): number | null => (promptTokens === 0 ? null : tokens / promptTokens);
  return {
    requests,
    failedAttempts,
    ttftMillis: timesOf(ttft)?.p50 ?? null,
    expectedHitRatio: share(expectedTokens),
    hitRatio: share(cachedTokens),
  };
}

function addTo(sums: Sums, { counts, times }: Sums): void {
  for (const key of Object.keys(counts) as (keyof Counts)[]) sums.counts[key] += counts[key];
  for (const key of Object.keys(times) as (keyof Times)[]) sums.times[key].merge(times[key]);
}

function slotOf({ slot, models }: Slot): TrafficSlot {
  const all = newSums();
  for (const sums of models.values()) addTo(all, sums);
  return { slot, ...figuresOf(all) };
}

function figuresOf({ counts: { promptTokens, cachedTokens, ...counts }, times }: Sums): RecentTrafficFigures {
  const { ttft, tpot, e2e } = times;
  return {
    ...counts,
    hitRatio: promptTokens === 0 ? null : cachedTokens / promptTokens,
    ttft: timesOf(ttft),
    tpot: timesOf(tpot),
    e2e: timesOf(e2e),
  };
}

function timesOf(histogram: TimeHistogram): TimeFigures | null {
  if (histogram.count === 0) return null;
  const millis = (micros: number) => Math.round(micros) / MICROS_PER_MILLI;
  return { mean: millis(histogram.mean), p50: millis(histogram.quantile(0.5)), p99: millis(histogram.quantile(0.99)) };
}
