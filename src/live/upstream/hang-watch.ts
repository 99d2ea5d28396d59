import type { EndpointId } from "#core/endpoint/endpoint.ts";
import {
  HANG_DEFAULTS,
  HangJudge,
  type HangOptions,
  type HangVerdict,
  type ProbeResult,
} from "#core/endpoint/hang-judge.ts";
import type { HangReason } from "#core/endpoint/hang-reason.ts";
import type { Input } from "#core/input.ts";
import { MICROS_PER_MILLI, type Micros } from "#core/units.ts";
import { nowMicros } from "../clock.ts";
import type { EndpointDirectory } from "../discovery/endpoint-directory.ts";
import type { Journal } from "../journal.ts";
import type { FaultEvent } from "../log/fault-log.ts";
import type { SweepListener } from "../request/in-flight.ts";

export interface HangWatchOptions {
  readonly journal: Journal;
  readonly directory: EndpointDirectory;
  readonly judge?: HangOptions;
  /** Requests that an endpoint serves one after the other before it is taken for well again. */
  readonly servedUntilWell?: number;
  readonly report?: (event: FaultEvent) => void;
  readonly now?: () => Micros;
}

/** Verdicts so far, by what they were. */
export type HangCounts = Record<HangReason | "resumed", number>;

const SERVED_UNTIL_WELL_DEFAULT = 8;

/** An endpoint of the router, and the requests there that wait for a byte as the sweep under way finds them. */
interface Watched {
  readonly id: EndpointId;
  readonly judge: HangJudge;
  streamSince: Micros;
  wholeSince: Micros;
  waiting: number;
}

/**
 * Puts what probes and requests find to a judge per endpoint, and carries its verdicts to the router as inputs: so they
 * are in the trace, and a replay and a simulation go by the same ones.
 */
export class HangWatch implements SweepListener {
  readonly #options: HangWatchOptions;
  readonly #watched = new Map<EndpointId, Watched>();
  /** As the router was told. */
  readonly #hung = new Set<EndpointId>();
  /** Addresses of several ranks from which an answer came since the last sweep. */
  readonly #aliveServers = new Set<string>();
  readonly #now: () => Micros;
  readonly counts: HangCounts = { silent: 0, stalled: 0, resumed: 0 };

  constructor(options: HangWatchOptions) {
    this.#options = options;
    this.#now = options.now ?? nowMicros;
    options.journal.listen({ accepted: (input) => this.#follow(input) });
  }

  isHung(endpoint: EndpointId): boolean {
    return this.#hung.has(endpoint);
  }

  /** A probe of an endpoint's server came to something. */
  probed(endpoint: EndpointId, result: ProbeResult): void {
    const watched = this.#watched.get(endpoint);
    if (watched === undefined) return;
    watched.judge.probed(this.#now(), result);
    this.#judge(watched);
  }

  /** A byte of an answer came since the last sweep. */
  answered(endpoint: EndpointId, at: Micros): void {
    const watched = this.#watched.get(endpoint);
    if (watched === undefined) return;
    watched.judge.answered(at);
    const entry = this.#options.directory.get(endpoint);
    if (entry?.dataParallelRank !== undefined) this.#aliveServers.add(entry.url);
  }

  /** An answer's first byte came after so long, or all of one that comes in one piece. */
  took(endpoint: EndpointId, kind: "stream" | "whole", micros: Micros): void {
    this.#watched.get(endpoint)?.judge.took(kind, micros);
  }

  sweepBegins(): void {
    for (const watched of this.#watched.values()) {
      watched.streamSince = Infinity;
      watched.wholeSince = Infinity;
      watched.waiting = 0;
    }
  }

  /** A request waits for a byte since then. */
  waits(endpoint: EndpointId, kind: "stream" | "whole", since: Micros): void {
    const watched = this.#watched.get(endpoint);
    if (watched === undefined) return;
    watched.waiting++;
    if (kind === "stream") watched.streamSince = Math.min(watched.streamSince, since);
    else watched.wholeSince = Math.min(watched.wholeSince, since);
  }

  sweepEnds(): void {
    this.#tellRanks();
    for (const watched of this.#watched.values()) {
      watched.judge.waits(watched.streamSince, watched.wholeSince);
      this.#judge(watched);
    }
  }

  /** A byte from one rank is a sign of life of the server that all its ranks share. */
  #tellRanks(): void {
    if (this.#aliveServers.size === 0) return;
    const at = this.#now();
    for (const { id, judge } of this.#watched.values()) {
      const url = this.#options.directory.get(id)?.url;
      if (url !== undefined && this.#aliveServers.has(url)) judge.alive(at);
    }
    this.#aliveServers.clear();
  }

  #follow(input: Input): void {
    if (input.kind === "endpoint-suspended") this.#hung.add(input.endpoint);
    else if (input.kind === "endpoint-resumed" || input.kind === "endpoint-left") this.#hung.delete(input.endpoint);
    if (input.kind === "endpoint-left") this.#watched.delete(input.endpoint);
    if (input.kind !== "endpoint-joined") return;
    const { id } = input.endpoint;
    const judge = new HangJudge(this.#options.judge ?? HANG_DEFAULTS, input.at);
    this.#watched.set(id, { id, judge, streamSince: Infinity, wholeSince: Infinity, waiting: 0 });
  }

  #judge(watched: Watched): void {
    const verdict = watched.judge.judge(this.#now());
    if (verdict === undefined) return;
    const { journal, report, servedUntilWell = SERVED_UNTIL_WELL_DEFAULT } = this.#options;
    const { id: endpoint, waiting } = watched;
    const at = this.#now();
    if (verdict.kind === "suspend") {
      this.counts[verdict.reason]++;
      journal.accept({ kind: "endpoint-suspended", at, endpoint, reason: verdict.reason });
      report?.(hungEvent(endpoint, verdict, waiting));
    } else {
      this.counts.resumed++;
      journal.accept({ kind: "endpoint-resumed", at, endpoint, servedUntilWell });
      report?.(returningEvent(endpoint, verdict.suspendedMicros));
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
    done: "it gets no new request while another endpoint may serve; requests without a byte go to another one, silent answers that began are cut",
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
    done: "it gets one request at a time, and one more with each that it serves",
    figures: { hungMillis: Math.round(suspendedMicros / MICROS_PER_MILLI) },
  };
}
