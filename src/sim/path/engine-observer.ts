import { assert } from "#core/base/assert.ts";
import type { Micros } from "#core/base/units.ts";
import type { EngineConfig } from "#engine/config.ts";
import type { EngineRequest, FinishReason } from "#engine/request.ts";
import type { EngineSink } from "#engine/sink.ts";
import type { EngineClock } from "../fleet/engine-clock.ts";
import { Flight } from "./flight.ts";
import { FurtherAnswer } from "#engine/further-answer.ts";
import { PrefillLeg } from "./prefill-leg.ts";
import type { AheadOfFlights } from "./stage-performer.ts";
import { Outcomes } from "../result/outcomes.ts";
import { NumberColumn } from "../result/column.ts";
import type { Latency, SimulationOptions } from "../setting/simulation-options.ts";
import type { CacheFollower } from "../fleet/cache-follower.ts";

/** Who is notified of what engines do with requests, at the time when they do it. */
export interface EngineListener {
  firstToken(at: Micros, flight: Flight): void;
  released(at: Micros, flight: Flight): void;
  finished(at: Micros, flight: Flight, reason: FinishReason): void;
  /** Of prompts that are computed for another engine. */
  readonly ahead: Pick<AheadOfFlights, "held" | "computed">;
}

/** Sums of one engine over all its requests, for means over a scrape's interval. */
interface LatencySums {
  ttftMicros: number;
  firstTokens: number;
  /** Requests past their first token, and the time that all together have spent there until `decodingAt`. */
  decoding: number;
  decodingMicros: number;
  decodingAt: Micros;
}

/** Listens to the engines and writes down what becomes of each request. */
export class EngineObserver {
  /** Gaps between the tokens of requests that were served to their end, where they are recorded, and their rows. */
  readonly gaps: NumberColumn<Float64Array> = new NumberColumn(Float64Array);
  readonly gapRows: NumberColumn<Int32Array> = new NumberColumn(Int32Array);
  /** When each engine was last done with a request. */
  readonly lastEndAt: Micros[] = [];
  /** By engine. */
  readonly sums: LatencySums[] = [];
  preemptions = 0;
  /** What engines do with requests that another engine has too, until it is known which of both answers. */
  readonly standbys: Outcomes = new Outcomes();
  readonly #outcomes: Outcomes;
  readonly #listener: EngineListener;
  readonly #recordsGaps: boolean;
  readonly #perTokenMicros: Micros;
  /** Between a first token at its engine and at its client. */
  readonly #firstTokenMicros: Micros;
  readonly #stepped: SimulationOptions["stepped"];

  constructor(
    outcomes: Outcomes,
    listener: EngineListener,
    { tokenGaps, latency, stepped }: Pick<SimulationOptions, "tokenGaps" | "latency" | "stepped">,
  ) {
    this.#outcomes = outcomes;
    this.#listener = listener;
    this.#recordsGaps = tokenGaps;
    this.#perTokenMicros = latency.perOutputTokenMicros;
    this.#firstTokenMicros = latency.perOutputTokenMicros + latency.answerMicros;
    this.#stepped = stepped;
  }

  sinkOf(engine: number, config: EngineConfig, caches: CacheFollower | undefined, clock: EngineClock): EngineSink {
    assert(!this.#recordsGaps || !config.coalesce, "gaps are reported by engines that do not coalesce");
    this.lastEndAt[engine] = 0;
    this.sums[engine] = { ttftMicros: 0, firstTokens: 0, decoding: 0, decodingMicros: 0, decodingAt: 0 };
    const stepped = this.#stepped;
    const observer: EngineSink = {
      ...(stepped && {
        step: (startAt, endAt) => stepped(engine, startAt + clock.shiftMicros, endAt + clock.shiftMicros),
      }),
      admitted: (at, request, cachedTokens) => this.#admitted(at + clock.shiftMicros, request, cachedTokens),
      token: (at, request, outputTokens) => this.#token(at + clock.shiftMicros, engine, request, outputTokens),
      held: (at, request, hold) => {
        if (request instanceof PrefillLeg) this.#listener.ahead.held(at + clock.shiftMicros, request, hold);
      },
      preempted: (_at, request) => {
        this.preemptions++;
        if (request instanceof FurtherAnswer) return;
        const flight = flightOf(request);
        this.outcomesOf(flight).preemptions[rowOf(flight)]! += 1;
      },
      released: (at, request) => {
        if (request instanceof Flight) this.#listener.released(at + clock.shiftMicros, request);
      },
      finished: (at, request, reason) => this.#finished(at + clock.shiftMicros, engine, request, reason),
    };
    return caches === undefined ? observer : { ...observer, ...caches.sinkOf(engine, config, clock) };
  }

  outcomesOf(flight: Flight): Outcomes {
    return flight.standby === undefined ? this.#outcomes : this.standbys;
  }

  /** How it ended, and when its client has all of it; `latency` is spent outside of the engine. */
  ended(flight: Flight, reason: FinishReason, latency: Latency): void {
    const outcomes = this.outcomesOf(flight);
    const row = rowOf(flight);
    if (reason === "deadline") return outcomes.end(row, "timed-out");
    outcomes.end(row, reason === "stop" ? "completed" : "length");
    const outside = outcomes.outputTokens[row]! * latency.perOutputTokenMicros + latency.afterLastTokenMicros;
    outcomes.e2e[row] = flight.lastTokenAt + latency.answerMicros + outside - flight.source.arrivalAt;
  }

  #admitted(at: Micros, request: EngineRequest, cachedTokens: number): void {
    if (request instanceof FurtherAnswer) return;
    const flight = flightOf(request);
    const { source, timesElsewhere, fetch } = flight;
    if (request instanceof PrefillLeg) request.cachedTokens = cachedTokens;
    // Whose prompt was computed elsewhere was admitted there before.
    if (timesElsewhere > 0 || fetch !== undefined) return;
    const outcomes = this.outcomesOf(flight);
    const row = rowOf(flight);
    outcomes.queueDelay[row] = at - source.arrivalAt;
    outcomes.cachedTokens[row] = cachedTokens;
  }

  #token(at: Micros, engine: number, request: EngineRequest, outputTokens: number): void {
    if (request instanceof FurtherAnswer) {
      const first = flightOf(request.first);
      if (first.firstEnded !== undefined) first.lastTokenAt = at;
      return;
    }
    if (!(request instanceof Flight)) return this.#prompted(at, engine, flightOf(request));
    const flight = request;
    const outcomes = this.outcomesOf(flight);
    const row = rowOf(flight);
    outcomes.outputTokens[row] = flight.continuedTokens + outputTokens;
    if (outputTokens === 1) {
      const first = flight.firstTokenAt < 0;
      flight.firstTokenAt = at;
      const goesOn = flight.timesElsewhere > 0;
      if (!goesOn) outcomes.ttft[row] = at - flight.source.arrivalAt + this.#firstTokenMicros;
      if (first) {
        const sums = this.sums[engine]!;
        sums.ttftMicros += at - (goesOn ? flight.sentAt : flight.source.arrivalAt);
        sums.firstTokens++;
        this.#decoding(at, engine, 1);
        this.#listener.firstToken(at, flight);
      }
      if (this.#recordsGaps) flight.gaps = [];
    } else flight.gaps?.push(at - flight.lastTokenAt + this.#perTokenMicros);
    flight.lastTokenAt = at;
    if (flight.judged?.tokens === outputTokens) flight.judged.ripe(at);
  }

  /** The one token of a prompt that is computed for another engine. */
  #prompted(at: Micros, engine: number, flight: Flight): void {
    const sums = this.sums[engine]!;
    sums.ttftMicros += at - flight.source.arrivalAt;
    sums.firstTokens++;
  }

  #decoding(at: Micros, engine: number, more: number): void {
    const sums = this.sums[engine]!;
    sums.decodingMicros += sums.decoding * (at - sums.decodingAt);
    sums.decodingAt = at;
    sums.decoding += more;
  }

  #finished(at: Micros, engine: number, request: EngineRequest, reason: FinishReason): void {
    this.lastEndAt[engine] = at;
    if (request instanceof FurtherAnswer) return this.#furtherFinished(at, flightOf(request.first), reason);
    const flight = flightOf(request);
    if (request instanceof PrefillLeg && (reason === "stop" || reason === "length"))
      return this.#listener.ahead.computed(at, request);
    for (const gap of (reason === "stop" || reason === "length" ? flight.gaps : undefined) ?? []) {
      this.gaps.push(gap);
      this.gapRows.push(flight.row);
    }
    if (flight.firstTokenAt >= 0) this.#decoding(at, engine, -1);
    if (flight.furtherEnded === flight.further.length || reason === "abort" || reason === "deadline")
      this.#listener.finished(at, flight, reason);
    else flight.firstEnded = reason;
  }

  /** One answer is over, which ends the request where it is the last one, or its client gave up. */
  #furtherFinished(at: Micros, flight: Flight, reason: FinishReason): void {
    flight.furtherEnded++;
    const { firstEnded } = flight;
    if (reason === "abort" || firstEnded === undefined) return;
    if (reason !== "deadline" && flight.furtherEnded < flight.further.length) return;
    flight.firstEnded = undefined;
    this.#listener.finished(at, flight, reason === "deadline" ? reason : firstEnded);
  }
}

function rowOf({ standby, row }: Flight): number {
  return standby?.row ?? row;
}

function flightOf(request: EngineRequest): Flight {
  if (request instanceof PrefillLeg) return request.flight;
  assert(request instanceof Flight, "an engine speaks of the flights that it was given");
  return request;
}
