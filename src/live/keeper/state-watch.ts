import type { EndpointId } from "#core/endpoint/endpoint.ts";
import type { EndpointRow } from "#core/fleet/endpoint-row.ts";
import { MICROS_PER_MILLI, MICROS_PER_SECOND, type Micros } from "#core/base/units.ts";
import type { FleetKeeper } from "./fleet-keeper.ts";
import type { EndpointDirectory } from "../endpoints/endpoint-directory.ts";
import type { FaultEvent } from "../log/fault-log.ts";

/** A count of lost things that only grows. */
export interface LossCount {
  readonly kind: "recorder-dropped" | "shadow-dropped";
  readonly total: () => number;
  readonly detail: string;
  readonly done: string;
}

export interface StateWatchOptions {
  /** Endpoints as the router sees them at a time. */
  readonly rows: (at: Micros) => readonly EndpointRow[];
  readonly directory: Pick<EndpointDirectory, "get">;
  readonly keeper: Pick<FleetKeeper, "rows">;
  readonly staleAfterMicros: Micros;
  readonly losses: readonly LossCount[];
  readonly report: (event: FaultEvent) => void;
  readonly now: () => Micros;
}

const WATCH_MILLIS = 1_000;
/** A loss that goes on is one line in so long, with what was lost since the last one. */
const LOSS_MICROS = 10 * MICROS_PER_SECOND;

interface Loss {
  readonly of: LossCount;
  reported: number;
  reportedAt: Micros;
}

/**
 * Looks now and then at what changes without an event: signals that grow old or come back, and counts of what was lost.
 * A change is one line, and what goes on is repeated at a bounded rate.
 */
export class StateWatch {
  readonly #options: StateWatchOptions;
  /** Endpoints whose signals were reported missing. */
  readonly #stale = new Set<EndpointId>();
  /** When an endpoint was first seen without any scrape. */
  readonly #unknownSince = new Map<EndpointId, Micros>();
  readonly #losses: Loss[];
  readonly #timer: NodeJS.Timeout;

  constructor(options: StateWatchOptions) {
    this.#options = options;
    this.#losses = options.losses.map((of) => ({ of, reported: 0, reportedAt: -LOSS_MICROS }));
    this.#timer = setInterval(() => this.look(), WATCH_MILLIS).unref();
  }

  look(): void {
    const at = this.#options.now();
    this.#lookAtSignals(at);
    for (const loss of this.#losses) if (at - loss.reportedAt >= LOSS_MICROS) this.#lookAtLoss(loss, at);
  }

  /** Reports what was lost since the last look, and stops. */
  stop(): void {
    clearInterval(this.#timer);
    for (const loss of this.#losses) this.#lookAtLoss(loss, this.#options.now());
  }

  #lookAtSignals(at: Micros): void {
    const rows = this.#options.rows(at);
    const known = new Set(rows.map(({ id }) => id));
    for (const id of this.#stale) if (!known.has(id)) this.#stale.delete(id);
    for (const id of this.#unknownSince.keys()) if (!known.has(id)) this.#unknownSince.delete(id);
    for (const row of rows) {
      const age = this.#ageOf(row, at);
      if (row.freshness === "fresh") this.#fresh(row.id);
      else if (age > this.#options.staleAfterMicros && !this.#stale.has(row.id)) this.#old(row, age);
    }
  }

  /** Since the last scrape that was read, or since the endpoint is here without one. */
  #ageOf({ id, freshness, loadAgeMicros }: EndpointRow, at: Micros): Micros {
    if (freshness !== "unknown") {
      this.#unknownSince.delete(id);
      return loadAgeMicros;
    }
    const since = this.#unknownSince.get(id) ?? at;
    this.#unknownSince.set(id, since);
    return at - since;
  }

  #old({ id, freshness }: EndpointRow, age: Micros): void {
    this.#stale.add(id);
    const { directory, keeper, report } = this.#options;
    const url = directory.get(id)?.url;
    const error = keeper.rows().find((row) => row.url === url)?.lastError ?? "";
    const since = freshness === "unknown" ? "its metrics were never read" : "its metrics were not read lately";
    report({
      kind: "signals-stale",
      endpoint: id,
      detail: error === "" ? since : `${since}: ${error}`,
      done: "the router goes by its own count of requests and tokens there; scraping goes on",
      figures: { ageMillis: Math.round(age / MICROS_PER_MILLI) },
    });
  }

  #fresh(id: EndpointId): void {
    if (!this.#stale.delete(id)) return;
    const detail = "its metrics are read again";
    this.#options.report({ kind: "signals-fresh", endpoint: id, detail, done: "the router goes by them again" });
  }

  #lookAtLoss(loss: Loss, at: Micros): void {
    const { kind, total, detail, done } = loss.of;
    const now = total();
    if (now <= loss.reported) return;
    this.#options.report({ kind, detail, done, figures: { records: now - loss.reported, recordsInAll: now } });
    loss.reported = now;
    loss.reportedAt = at;
  }
}
