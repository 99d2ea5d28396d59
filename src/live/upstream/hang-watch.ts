import type { EndpointId } from "#core/endpoint/endpoint.ts";
import type { HangOptions, HangVerdict, ProbeResult, WaitKind } from "#core/endpoint/hang-judge.ts";
import type { HangReason } from "#core/endpoint/hang-reason.ts";
import { HangWatch as PureHangWatch } from "#core/retry/hang-watch.ts";
import { PATH_RULES } from "#core/retry/path-rules.ts";
import { MICROS_PER_MILLI, type Micros } from "#core/units.ts";
import { nowMicros } from "../clock.ts";
import type { EndpointDirectory } from "../discovery/endpoint-directory.ts";
import type { RouterTap } from "../router-tap.ts";
import type { FaultEvent } from "../log/fault-log.ts";
import type { SweepListener } from "../request/in-flight.ts";

export interface HangWatchOptions {
  readonly tap: RouterTap;
  readonly directory: EndpointDirectory;
  readonly judge?: HangOptions;
  /** Requests that an endpoint serves one after the other before it is taken for well again. */
  readonly servedUntilWell?: number;
  readonly report?: (event: FaultEvent) => void;
  readonly now?: () => Micros;
}

/** Verdicts so far, by what they were. */
export type HangCounts = Record<HangReason | "resumed", number>;

/** The core's watch over the gateway's endpoints, with a clock, counters and a log. */
export class HangWatch implements SweepListener {
  readonly #watch: PureHangWatch;
  readonly #now: () => Micros;
  readonly #report: HangWatchOptions["report"];
  readonly counts: HangCounts = { silent: 0, stalled: 0, resumed: 0 };

  constructor({ tap, directory, judge, servedUntilWell, report, now }: HangWatchOptions) {
    this.#now = now ?? nowMicros;
    this.#report = report;
    const watch = new PureHangWatch({
      judge: judge ?? PATH_RULES.hang,
      servedUntilWell: servedUntilWell ?? PATH_RULES.servedUntilWell,
      accept: (input) => void tap.accept(input),
      judged: (endpoint, verdict, waiting) => this.#judged(endpoint, verdict, waiting),
      serverOf: (endpoint) => {
        const entry = directory.get(endpoint);
        return entry?.dataParallelRank === undefined ? undefined : entry.url;
      },
    });
    this.#watch = watch;
    tap.listen({ accepted: (input) => watch.follow(input) });
  }

  isHung(endpoint: EndpointId): boolean {
    return this.#watch.isHung(endpoint);
  }

  /** A probe of an endpoint's server came to something. */
  probed(endpoint: EndpointId, result: ProbeResult): void {
    this.#watch.probed(endpoint, result, this.#now());
  }

  /** A byte of an answer came since the last sweep. */
  answered(endpoint: EndpointId, at: Micros): void {
    this.#watch.answered(endpoint, at);
  }

  /** An answer's first byte came after so long, or all of one that comes in one piece. */
  took(endpoint: EndpointId, kind: WaitKind, micros: Micros): void {
    this.#watch.took(endpoint, kind, micros);
  }

  sweepBegins(): void {
    this.#watch.sweepBegins();
  }

  /** A request waits for a byte since then. */
  waits(endpoint: EndpointId, kind: WaitKind, since: Micros): void {
    this.#watch.waits(endpoint, kind, since);
  }

  sweepEnds(): void {
    this.#watch.sweepEnds(this.#now());
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

function returningEvent(endpoint: EndpointId, suspendedMicros: Micros): FaultEvent {
  return {
    kind: "endpoint-returning",
    endpoint,
    detail: "it answers again, or may try a request",
    done: "it gets one request, then twice as many with each that it answers",
    figures: { hungMillis: Math.round(suspendedMicros / MICROS_PER_MILLI) },
  };
}
