import { MICROS_PER_SECOND, type Micros } from "#core/base/units.ts";
import type { Family, MetricRow, MetricRowOf } from "./metric-family.ts";

/** How far it is known where another router sends requests. Plain data. */
export interface TapStatus {
  /** Requests by how their place became known; none: it did not. */
  readonly places: Readonly<Record<string, number>>;
  /** Requests that waited no longer for it, by reason. */
  readonly givenWay: Readonly<Record<string, number>>;
  /** Places learned while their request was let go already, and after its end. */
  readonly moved: number;
  readonly tooLate: number;
  /** Inputs that wait. */
  readonly held: number;
  readonly heldBytes: number;
  readonly lagMicros: Micros;
  /** Answers whose header names an engine that is not listed. */
  readonly unlisted: number;
  /** Requests whose place the engines' counters did not show, by reason. */
  readonly unexplained: Readonly<Record<string, number>>;
  readonly untokenized: { readonly late: number; readonly failed: number };
  /** Requests of an Envoy that were not observed, since as many were in flight as may be. */
  readonly unobserved: number;
  /** Defects met while requests were observed; the requests went on. */
  readonly failures: number;
}

/** Rows are there where another router decides. */
export function registerTap(status: (() => TapStatus) | undefined, family: Family, row: MetricRowOf): void {
  const by = (label: string, counts: Readonly<Record<string, number>>) =>
    Object.entries(counts).map(([name, count]) => row(count, { [label]: name }));
  const rows: Rows = (of) => () => (status === undefined ? [] : of(status()));

  family(
    "counter",
    "tap_places_total",
    "Requests by how it was learned where another router sent them.",
    rows(({ places }) => by("by", places)),
  );
  family(
    "counter",
    "tap_given_way_total",
    "Requests recorded before their place was known, because they had waited long enough (time) or took too much room (room).",
    rows(({ givenWay }) => by("reason", givenWay)),
  );
  family(
    "counter",
    "tap_late_places_total",
    "Places learned after their request was recorded: it moved there, or had ended.",
    rows(({ moved, tooLate }) => by("event", { moved, ended: tooLate })),
  );
  family(
    "counter",
    "tap_unlisted_total",
    "Headers that name an engine which is not listed.",
    rows(({ unlisted }) => [row(unlisted)]),
  );
  family(
    "counter",
    "tap_unexplained_total",
    "Requests whose place the engines' counters did not show: nothing fits, too much may (possibilities), or too many wait (room).",
    rows(({ unexplained }) => by("reason", unexplained)),
  );
  family(
    "counter",
    "tap_untokenized_total",
    "Prompts without tokens, because the tokenizer was late or failed.",
    rows(({ untokenized }) => by("reason", { ...untokenized })),
  );
  family(
    "counter",
    "tap_unobserved_total",
    "Requests of an Envoy that were not observed, because limits.requestsInFlightMax were.",
    rows(({ unobserved }) => [row(unobserved)]),
  );
  family(
    "counter",
    "tap_failures_total",
    "Defects met while requests were observed; the requests went on.",
    rows(({ failures }) => [row(failures)]),
  );
  registerHeld(rows, family, row);
}

type Rows = (of: (now: TapStatus) => MetricRow[]) => () => MetricRow[];

function registerHeld(rows: Rows, family: Family, row: MetricRowOf): void {
  family(
    "gauge",
    "tap_held",
    "Inputs that wait until a place is known.",
    rows(({ held }) => [row(held)]),
  );
  family(
    "gauge",
    "tap_held_bytes",
    "Bytes that they take.",
    rows(({ heldBytes }) => [row(heldBytes)]),
  );
  family(
    "gauge",
    "tap_lag_seconds",
    "Age of the oldest of them.",
    rows(({ lagMicros }) => [row(lagMicros / MICROS_PER_SECOND)]),
  );
}
