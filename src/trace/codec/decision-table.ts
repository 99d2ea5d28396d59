import { REFUSAL_REASONS, WAIT_REASONS } from "#core/admission/held.ts";
import { ColumnBreakdown } from "#core/input/breakdown.ts";
import {
  type Breakdown,
  type CandidateRow,
  COLOCATE_REASONS,
  type Decision,
  type RoutedPrefill,
  type Queued,
  type Rejected,
  type RejectReason,
  type Routed,
} from "#core/input/decision.ts";
import type { PrefixSource } from "#core/endpoint/knowledge.ts";
import type { Freshness } from "#core/endpoint/snapshot.ts";
import type { Forecast } from "#core/latency/forecast.ts";
import type { Micros } from "#core/base/units.ts";
import { prefillTerms } from "./stage-table.ts";
import { expected } from "./format-error.ts";
import type { JsonBytes } from "./json-bytes.ts";
import { breakdownDigest, NO_POLICY_VERSION, type RecordedBreakdown, type RecordedDecision } from "./record.ts";
import {
  as,
  type Beside,
  bool,
  type FieldType,
  integer,
  type JsonFields,
  number,
  objectOf,
  oneOf,
  optional,
  type Place,
  pathOf,
  text,
  usually,
} from "./field-type.ts";
import { record } from "./record-type.ts";
import { decisionRollout } from "./rollout-table.ts";

const FRESHNESS: readonly Freshness[] = ["fresh", "stale", "unknown"];
const REJECT_REASONS: readonly RejectReason[] = [
  "no-endpoint",
  "unknown-model",
  "asleep",
  "excluded",
  "saturated",
  ...REFUSAL_REASONS,
];
/** Columns of a row before the total and the scorers' values. */
const ROW_COLUMNS = 9;

/** `[TTFT, TPOT, TTFT at the next best]` in microseconds; without the last where there was none, and in older traces. */
const forecast: FieldType<Forecast> = {
  write({ ttftMicros, tpotMicros, nextTtftMicros: next }, to) {
    const start = to.length;
    to.next(ttftMicros);
    to.next(tpotMicros);
    if (next !== undefined) to.next(next);
    to.list(start);
  },
  read(value, parent, key) {
    const [ttftMicros, tpotMicros, next, ...more] = Array.isArray(value) ? (value as unknown[]) : [];
    if (!isMicros(ttftMicros) || !isMicros(tpotMicros) || !(next === undefined || isMicros(next)) || more.length > 0)
      throw expected(pathOf(parent, key), "TTFT, TPOT and maybe TTFT at the next best in microseconds", value);
    return next === undefined ? { ttftMicros, tpotMicros } : { ttftMicros, tpotMicros, nextTtftMicros: next };
  },
};

const isMicros = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) >= 0;

const prefixSource = as<PrefixSource>("precise", {
  write: (_value, to) => to.ascii("true"),
  omits: (value) => value === "approximate",
  read: (value, parent, key, beside) =>
    value !== undefined && bool.read(value, parent, key, beside) ? "precise" : "approximate",
});

type Described = Omit<RoutedPrefill, "breakdown" | "noted">;

const described = record<Described>({
  endpoint: text,
  ...prefillTerms,
  reason: text,
  hitTokens: usually(0, number),
  heldTokens: optional(number),
  prefixSource,
});

const prefill: FieldType<RoutedPrefill> = {
  write(value, to, beside) {
    const start = to.length;
    described.fields(value, to, beside);
    writeBreakdown(value.breakdown, value.endpoint, to, beside.candidatesMax);
    to.object(start);
  },
  read(value, parent, key, beside) {
    const given = objectOf(value, parent, key);
    const place = { parent, key };
    const breakdown = breakdownType.read(given["breakdown"], place, "breakdown", beside);
    return { ...described.readFields(given, place, beside), breakdown };
  },
};

const head = {
  sequence: integer(0),
  profile: text,
  policyVersion: usually(NO_POLICY_VERSION, integer(1)),
  rollout: optional(decisionRollout),
  attempt: usually(1, integer(1)),
};
const limit = optional(text);

type Body<D extends Decision> = Omit<D, "kind" | "at" | "requestId" | "breakdown">;

const routed = record<Omit<Body<Routed>, "noted" | "sentFirst">>({
  ...head,
  endpoint: text,
  reason: text,
  hitTokens: usually(0, number),
  heldTokens: optional(number),
  prefixSource,
  usedLedger: usually(false, bool),
  forecast: optional(forecast),
  colocated: optional(oneOf(COLOCATE_REASONS)),
  prefill: optional(prefill),
  priority: optional(number),
});
const rejected = record<Body<Rejected>>({
  ...head,
  reason: as("rejected", oneOf(REJECT_REASONS)),
  limit,
  retryMicros: optional(integer(0)),
});
const queued = record<Body<Queued>>({ ...head, reason: as("queued", oneOf(WAIT_REASONS)), limit });

/**
 * A decision as a JSON object, with `candidatesMax` candidates at most: of a larger fleet the chosen one and those with
 * the highest totals. Its time and request are its input's and are not written again; nor is what is as usual.
 */
export function encodeDecision(decision: Decision | RecordedDecision, to: JsonBytes, beside: Beside): void {
  const chosen = decision.kind === "routed" ? decision.endpoint : "";
  const start = to.length;
  writeBody(decision, to, beside);
  writeBreakdown(decision.breakdown, chosen, to, beside.candidatesMax);
  to.object(start);
}

function writeBody(decision: Decision | RecordedDecision, to: JsonBytes, beside: Beside): void {
  switch (decision.kind) {
    case "routed":
      return routed.fields(decision, to, beside);
    case "rejected":
      return rejected.fields(decision, to, beside);
    case "queued":
      return queued.fields(decision, to, beside);
  }
}

/** Reads a decision back; `at` and `requestId` come from its input. */
export function decodeDecision(given: unknown, at: Micros, requestId: string, beside: Beside): RecordedDecision {
  const values = objectOf(given, undefined, "decision");
  const place = { parent: undefined, key: "decision" };
  const breakdown = breakdownType.read(values["breakdown"], place, "breakdown", beside);
  if (values["rejected"] !== undefined)
    return { kind: "rejected", at, requestId, ...rejected.readFields(values, place, beside), breakdown };
  if (values["queued"] !== undefined)
    return { kind: "queued", at, requestId, ...queued.readFields(values, place, beside), breakdown };
  return { kind: "routed", at, requestId, ...routed.readFields(values, place, beside), breakdown };
}

/**
 * The field of a breakdown, with rows of `[endpoint, removedBy, freshness, loadAge, load, kv, inFlight, prefill, hit, total,
 * one value per scorer]`. What comes from the engine's own events has a freshness that is higher by as many as there are.
 */
function writeBreakdown(breakdown: Breakdown, chosen: string, to: JsonBytes, candidatesMax: number): void {
  const { scorers, totals, values, clamped } = breakdown;
  const count = totals.length;
  to.ascii(',"breakdown":{"endpoints":');
  to.number(isRecorded(breakdown) ? breakdown.endpointCount : count);
  if (clamped !== 0) {
    to.ascii(',"clamped":');
    to.number(clamped);
  }
  to.ascii(',"digest":');
  to.number(isRecorded(breakdown) ? breakdown.digest : breakdownDigest(breakdown));
  to.ascii(',"scorers":');
  to.bytes(scorersJson(scorers));
  to.ascii(',"rows":');
  const rows = to.length;
  for (const i of keptCandidates(breakdown, chosen, candidatesMax)) {
    to.comma();
    const row = to.length;
    writeRowHead(rowOf(breakdown, i), to);
    writeFinite(totals[i]!, to);
    for (let s = 0; s < scorers.length; s++) writeFinite(values[s * count + i]!, to);
    to.list(row);
  }
  to.list(rows);
  to.ascii("}");
}

/** What was read from a trace may lack candidates, and keeps the digest of all. */
function isRecorded(breakdown: Breakdown): breakdown is RecordedBreakdown {
  return "digest" in breakdown;
}

function writeRowHead(row: CandidateRow, to: JsonBytes): void {
  to.comma();
  to.text(row.endpoint);
  to.comma();
  to.text(row.removedBy);
  to.next(freshnessOf(row));
  to.next(row.loadAgeMicros);
  writeFinite(row.effectiveLoad, to);
  writeFinite(row.kvUtilization, to);
  to.next(row.requestsInFlight);
  to.next(row.prefillTokensQueued);
  to.next(row.hitTokens);
}

function freshnessOf({ freshness, prefixSource }: CandidateRow): number {
  return FRESHNESS.indexOf(freshness) + (prefixSource === "precise" ? FRESHNESS.length : 0);
}

/** Indexes of all candidates up to the bound; beyond it of the chosen one and the highest totals, in order of id. */
function keptCandidates(breakdown: Breakdown, chosen: string, candidatesMax: number): number[] {
  const { totals } = breakdown;
  const kept: number[] = [];
  if (totals.length <= candidatesMax) {
    for (let i = 0; i < totals.length; i++) kept.push(i);
    return kept;
  }
  if (candidatesMax === 0) return kept;
  const endpoints = breakdown instanceof ColumnBreakdown ? breakdown.endpoints : breakdown.candidates.map(endpointOf);
  const ranks: number[] = [];
  for (let i = 0; i < totals.length; i++) {
    const own = endpoints[i] === chosen ? Infinity : Number.isNaN(totals[i]!) ? -Infinity : totals[i]!;
    if (kept.length === candidatesMax && own <= ranks[candidatesMax - 1]!) continue;
    let place = Math.min(kept.length, candidatesMax - 1);
    for (; place > 0 && own > ranks[place - 1]!; place--) {
      kept[place] = kept[place - 1]!;
      ranks[place] = ranks[place - 1]!;
    }
    kept[place] = i;
    ranks[place] = own;
  }
  return kept.sort((a, b) => a - b);
}

/** One candidate without making the rows of all, where the router's own breakdown can. */
function rowOf(breakdown: Breakdown, index: number): CandidateRow {
  return breakdown instanceof ColumnBreakdown ? breakdown.row(index) : breakdown.candidates[index]!;
}

const endpointOf = ({ endpoint }: CandidateRow) => endpoint;

/** Profiles hold one array of scorers for life, so its text is made once. */
const SCORERS_JSON = new WeakMap<Breakdown["scorers"], Uint8Array>();

function scorersJson(scorers: Breakdown["scorers"]): Uint8Array {
  let bytes = SCORERS_JSON.get(scorers);
  if (bytes === undefined) {
    bytes = Buffer.from(JSON.stringify(scorers.map(({ name, weight }) => [name, weight])));
    SCORERS_JSON.set(scorers, bytes);
  }
  return bytes;
}

/** The next value of a list, null for what is no number. */
function writeFinite(value: number, to: JsonBytes): void {
  if (Number.isFinite(value)) to.next(value);
  else to.ascii(",null");
}

const breakdownType: Pick<FieldType<RecordedBreakdown>, "read"> = {
  read(value, parent, key, beside) {
    const given = objectOf(value, parent, key);
    const place = { parent, key };
    const scorers = listIn(given, "scorers", place).map((entry, i) => {
      const [name, weight] = Array.isArray(entry) ? (entry as unknown[]) : [];
      if (typeof name !== "string" || typeof weight !== "number")
        throw expected(`${pathOf(place, "scorers")}[${i}]`, "a name and a weight", entry);
      return { name, weight };
    });
    const rows = listIn(given, "rows", place);
    const candidates: CandidateRow[] = [];
    const totals = new Float64Array(rows.length);
    const values = new Float64Array(rows.length * scorers.length);
    rows.forEach((entry, i) => {
      const row = decodeRow(entry, ROW_COLUMNS + 1 + scorers.length, `${pathOf(place, "rows")}[${i}]`);
      candidates.push(row.candidate);
      totals[i] = row.numbers[0]!;
      for (let s = 0; s < scorers.length; s++) values[s * rows.length + i] = row.numbers[1 + s]!;
    });
    return {
      candidates,
      scorers,
      totals,
      values,
      endpointCount: integer(candidates.length).read(given["endpoints"], place, "endpoints", beside),
      clamped: usually(0, integer(0)).read(given["clamped"], place, "clamped", beside),
      digest: integer(0).read(given["digest"], place, "digest", beside),
    };
  },
};

function listIn(given: JsonFields, key: string, place: Place): readonly unknown[] {
  const value = given[key];
  if (!Array.isArray(value)) throw expected(pathOf(place, key), "a list", value);
  return value as unknown[];
}

function decodeRow(entry: unknown, columns: number, path: string): { candidate: CandidateRow; numbers: number[] } {
  if (!Array.isArray(entry) || entry.length !== columns) throw expected(path, `a row of ${columns}`, entry);
  const [endpoint, removedBy, freshness, ...rest] = entry as unknown[];
  const name = typeof freshness === "number" ? FRESHNESS[freshness % FRESHNESS.length] : undefined;
  if (typeof endpoint !== "string" || typeof removedBy !== "string" || name === undefined)
    throw expected(path, "endpoint, removedBy and freshness first", entry);
  const numbers = rest.map((value) => {
    if (value !== null && typeof value !== "number") throw expected(path, "numbers", entry);
    return value ?? NaN;
  });
  return {
    candidate: {
      endpoint,
      removedBy,
      freshness: name,
      loadAgeMicros: numbers[0]!,
      effectiveLoad: numbers[1]!,
      kvUtilization: numbers[2]!,
      requestsInFlight: numbers[3]!,
      prefillTokensQueued: numbers[4]!,
      hitTokens: numbers[5]!,
      prefixSource: Number(freshness) < FRESHNESS.length ? "approximate" : "precise",
    },
    numbers: numbers.slice(6),
  };
}
