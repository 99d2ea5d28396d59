import type { EndpointId } from "#core/endpoint/endpoint.ts";
import type { HangOptions, HangVerdict, ProbeResult } from "#core/endpoint/hang-judge.ts";
import type { HangReason } from "#core/endpoint/hang-reason.ts";
import { HangWatch, WATCHED_INPUTS } from "#core/path/hang-watch.ts";
import { PATH_RULES } from "#core/path/path-rules.ts";
import { MICROS_PER_MILLI, type Micros } from "#core/base/units.ts";
import { nowMicros } from "../base/clock.ts";
import type { EndpointDirectory } from "../endpoints/endpoint-directory.ts";
import type { Intake } from "../base/intake.ts";
import type { FaultEvent } from "../log/fault-log.ts";
import type { SweepListener } from "../http/in-flight.ts";

export interface HangDetectorOptions {
  readonly intake: Intake;
  readonly directory: EndpointDirectory;
  readonly judge?: HangOptions;
  /** Requests that an endpoint serves one after the other before it is taken for well again. */
  readonly servedUntilWell?: number;
  readonly report?: (event: FaultEvent) => void;
  readonly now?: () => Micros;
}

/** Verdicts so far, by what they were, and how often this program stood still. */
export type HangCounts = Record<HangReason | "resumed" | "standstills", number>;

const BEAT_MILLIS = 250;
/** Of two beats that are so far apart, nothing was seen in between. */
const STANDSTILL_MILLIS = 2_000;

/** The core's watch over the gateway's endpoints, with a clock, counters and a log. */
export class HangDetector extends HangWatch implements SweepListener {
  readonly #intake: Intake;
  readonly #now: () => Micros;
  readonly #report: HangDetectorOptions["report"];
  readonly counts: HangCounts = { silent: 0, stalled: 0, resumed: 0, standstills: 0 };
  stoodStillUntil: Micros = 0;
  #beats: NodeJS.Timeout | undefined;
  #beatAt: Micros = 0;

  constructor({ intake, directory, judge, servedUntilWell, report, now }: HangDetectorOptions) {
    super({
      judge: judge ?? PATH_RULES.hang,
      servedUntilWell: servedUntilWell ?? PATH_RULES.servedUntilWell,
      accept: (input) => void intake.accept(input),
      judged: (endpoint, verdict, waiting) => this.#judged(endpoint, verdict, waiting),
      serverOf: (endpoint) => {
        const entry = directory.get(endpoint);
        return entry?.dataParallelRank === undefined ? undefined : entry.url;
      },
    });
    this.#now = now ?? nowMicros;
    this.#report = report;
    this.#intake = intake;
    intake.listen({ accepted: (input) => this.follow(input) }, WATCHED_INPUTS);
  }

  isDraining(endpoint: EndpointId): boolean {
    return this.#intake.router.isDraining(endpoint);
  }

  /** Sees from now on where this program stands still, until it is stopped. */
  start(): void {
    this.#beatAt = this.#now();
    this.#beats ??= setInterval(() => this.#beat(), BEAT_MILLIS).unref();
  }

  stop(): void {
    clearInterval(this.#beats);
    this.#beats = undefined;
  }

  /** Whoever is first after a standstill finds it: a timer, a probe whose time is over, or a sweep. */
  #beat(): void {
    if (this.#beats === undefined) return;
    const at = this.#now();
    const stood = at - this.#beatAt;
    this.#beatAt = at;
    if (stood < STANDSTILL_MILLIS * MICROS_PER_MILLI) return;
    this.stoodStillUntil = at;
    this.counts.standstills++;
    this.stoodStill(at);
    this.#report?.(standstillEvent(stood));
  }

  /** A probe of an endpoint's server came to something. */
  override probed(endpoint: EndpointId, result: ProbeResult): void {
    this.#beat();
    super.probed(endpoint, result, this.#now());
  }

  override sweepBegins(): void {
    this.#beat();
    super.sweepBegins();
  }

  override sweepEnds(): void {
    super.sweepEnds(this.#now());
  }

  #judged(endpoint: EndpointId, verdict: HangVerdict, waiting: number): void {
    if (verdict.kind === "suspend") {
      this.counts[verdict.reason]++;
      this.#report?.(hungEvent(endpoint, verdict, waiting));
    } else {
      this.counts.resumed++;
      this.#report?.(returningEvent(endpoint, verdict.suspendedMicros));
    }
  }
}

const FOUND: Readonly<Record<ProbeResult, string>> = {
  none: "it answers neither requests nor its metrics page nor its health check",
  health: "it answers its health check, and neither requests nor its metrics page",
  "no-page": "it answers no request",
  static: "it answers its metrics page, which shows no work, and no request",
  moving: "it answers its metrics page, which shows no work, and no request",
};

function hungEvent(
  endpoint: EndpointId,
  { probe, quietMicros, limitMicros }: HangVerdict & { readonly kind: "suspend" },
  requestsWaiting: number,
): FaultEvent {
  return {
    kind: "endpoint-hung",
    endpoint,
    detail: FOUND[probe],
    done: "it gets no new request while another endpoint may serve; requests without a byte go to another one, silent answers that began go on elsewhere, or are waited for where nobody else may serve",
    figures: {
      quietMillis: Math.round(quietMicros / MICROS_PER_MILLI),
      limitMillis: Math.round(limitMicros / MICROS_PER_MILLI),
      requestsWaiting,
    },
  };
}

function standstillEvent(stoodMicros: Micros): FaultEvent {
  return {
    kind: "gateway-stood-still",
    detail: "this program did not run for a while: it was stopped, or its machine was",
    done: "no silence of that time speaks against an endpoint",
    figures: { stoodMillis: Math.round(stoodMicros / MICROS_PER_MILLI) },
  };
}

function returningEvent(endpoint: EndpointId, suspendedMicros: Micros): FaultEvent {
  return {
    kind: "endpoint-returning",
    endpoint,
    detail: "it answers again, or may try a request",
    done: "it gets one request, then twice as many with each that it answers",
    figures: { hungMillis: Math.round(suspendedMicros / MICROS_PER_MILLI) },
  };
}
