import { ColumnBreakdown } from "#core/breakdown.ts";
import { REFUSAL_REASONS, WAIT_REASONS } from "#core/admission/held.ts";
import type { Breakdown, CandidateRow, Decision, RejectReason } from "#core/decision.ts";
import type { Freshness } from "#core/endpoint/snapshot.ts";
import type { Forecast } from "#core/latency/forecast.ts";
import type { Micros } from "#core/units.ts";
import { type Fields, expected } from "./fields.ts";
import { decodeStages, encodeStages } from "./prefill-codec.ts";
import { decodeDecisionRollout } from "./rollout-codec.ts";
import { breakdownDigest, NO_POLICY_VERSION, type RecordedBreakdown, type RecordedDecision } from "./record.ts";

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

/**
 * A decision as a JSON object, with `candidatesMax` candidates at most: of a larger fleet the chosen one and those with
 * the highest totals. Its time and request are its input's and are not written again; nor is what is as usual.
 */
export function encodeDecision(decision: Decision | RecordedDecision, candidatesMax: number): string {
  const { sequence, attempt, profile, policyVersion, breakdown } = decision;
  let text = `{"sequence":${sequence},"profile":${JSON.stringify(profile)}`;
  if (policyVersion !== NO_POLICY_VERSION) text += `,"policyVersion":${policyVersion}`;
  if (decision.rollout !== undefined) text += `,"rollout":${JSON.stringify(decision.rollout)}`;
  if (attempt !== 1) text += `,"attempt":${attempt}`;
  if (decision.kind === "rejected") {
    text += `,"rejected":"${decision.reason}"${limitJson(decision)}`;
    if (decision.retryMicros !== undefined) text += `,"retryMicros":${decision.retryMicros}`;
  } else if (decision.kind === "queued") text += `,"queued":"${decision.reason}"${limitJson(decision)}`;
  else {
    text += `,"endpoint":${JSON.stringify(decision.endpoint)},"reason":${JSON.stringify(decision.reason)}`;
    if (decision.hitTokens !== 0) text += `,"hitTokens":${decision.hitTokens}`;
    if (decision.heldTokens !== undefined) text += `,"heldTokens":${decision.heldTokens}`;
    if (decision.prefixSource === "precise") text += `,"precise":true`;
    if (decision.usedLedger) text += `,"usedLedger":true`;
    if (decision.forecast !== undefined) text += forecastJson(decision.forecast);
    text += encodeStages(decision, (stage, chosen) => encodeBreakdown(stage, chosen, candidatesMax));
    if (decision.priority !== undefined) text += `,"priority":${decision.priority}`;
  }
  const chosen = decision.kind === "routed" ? decision.endpoint : "";
  return `${text},"breakdown":${encodeBreakdown(breakdown, chosen, candidatesMax)}}`;
}

/** Reads a decision back; `at` and `requestId` come from its input. */
export function decodeDecision(fields: Fields, at: Micros, requestId: string): RecordedDecision {
  const common = {
    at,
    requestId,
    sequence: fields.integer("sequence", 0),
    attempt: fields.integer("attempt", 1, 1),
    profile: fields.string("profile"),
    policyVersion: fields.integer("policyVersion", 1, NO_POLICY_VERSION),
    ...decodeDecisionRollout(fields),
    breakdown: decodeBreakdown(fields.object("breakdown")),
  };
  const limit = fields.has("limit") && { limit: fields.string("limit") };
  if (fields.has("rejected")) {
    const retry = fields.has("retryMicros") && { retryMicros: fields.integer("retryMicros", 0) };
    return { kind: "rejected", ...common, reason: fields.oneOf("rejected", REJECT_REASONS), ...limit, ...retry };
  }
  if (fields.has("queued")) {
    return { kind: "queued", ...common, reason: fields.oneOf("queued", WAIT_REASONS), ...limit };
  }
  return {
    kind: "routed",
    ...common,
    endpoint: fields.string("endpoint"),
    reason: fields.string("reason"),
    hitTokens: fields.number("hitTokens", 0),
    ...(fields.has("heldTokens") && { heldTokens: fields.number("heldTokens") }),
    prefixSource: fields.boolean("precise", false) ? "precise" : "approximate",
    usedLedger: fields.boolean("usedLedger", false),
    ...decodeForecast(fields),
    ...decodeStages(fields, decodeBreakdown),
    ...(fields.has("priority") && { priority: fields.number("priority") }),
  };
}

/** `[TTFT, TPOT]` in microseconds. */
function forecastJson({ ttftMicros, tpotMicros }: Forecast): string {
  return `,"forecast":[${ttftMicros},${tpotMicros}]`;
}

function decodeForecast(fields: Fields): { readonly forecast?: Forecast } {
  if (!fields.has("forecast")) return {};
  const entry = fields.list("forecast");
  const [ttftMicros, tpotMicros] = entry;
  if (entry.length !== 2 || !isMicros(ttftMicros) || !isMicros(tpotMicros))
    throw expected(fields.pathOf("forecast"), "TTFT and TPOT in microseconds", entry);
  return { forecast: { ttftMicros, tpotMicros } };
}

const isMicros = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) >= 0;

function limitJson({ limit }: { readonly limit?: string }): string {
  return limit === undefined ? "" : `,"limit":${JSON.stringify(limit)}`;
}

/**
 * `[endpoint, removedBy, freshness, loadAge, load, kv, inFlight, prefill, hit, total, one value per scorer]` a row. What
 * comes from the engine's own events has a freshness that is higher by as many as there are.
 */
function encodeBreakdown(breakdown: Breakdown, chosen: string, candidatesMax: number): string {
  const { scorers, totals, values } = breakdown;
  const count = totals.length;
  let rows = "";
  for (const i of keptCandidates(breakdown, chosen, candidatesMax)) {
    rows += `${rows === "" ? "[" : ",["}${rowHead(rowOf(breakdown, i))},${finite(totals[i]!)}`;
    for (let s = 0; s < scorers.length; s++) rows += `,${finite(values[s * count + i]!)}`;
    rows += "]";
  }
  const clamped = breakdown.clamped === 0 ? "" : `"clamped":${breakdown.clamped},`;
  const endpoints = isRecorded(breakdown) ? breakdown.endpointCount : count;
  const digest = isRecorded(breakdown) ? breakdown.digest : breakdownDigest(breakdown);
  return `{"endpoints":${endpoints},${clamped}"digest":${digest},"scorers":${scorersJson(scorers)},"rows":[${rows}]}`;
}

/** What was read from a trace may lack candidates, and keeps the digest of all. */
function isRecorded(breakdown: Breakdown): breakdown is RecordedBreakdown {
  return "digest" in breakdown;
}

function rowHead(row: CandidateRow): string {
  const signals = `${row.loadAgeMicros},${finite(row.effectiveLoad)},${finite(row.kvUtilization)},${row.requestsInFlight},${row.prefillTokensQueued},${row.hitTokens}`;
  return `${JSON.stringify(row.endpoint)},${JSON.stringify(row.removedBy)},${freshnessOf(row)},${signals}`;
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
  const rank = (i: number) =>
    endpointOf(breakdown, i) === chosen ? Infinity : Number.isNaN(totals[i]!) ? -Infinity : totals[i]!;
  const ranks: number[] = [];
  for (let i = 0; i < totals.length; i++) {
    const own = rank(i);
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

function endpointOf(breakdown: Breakdown, index: number): string {
  return breakdown instanceof ColumnBreakdown ? breakdown.endpoints[index]! : breakdown.candidates[index]!.endpoint;
}

/** Profiles hold one array of scorers for life, so its text is made once. */
const SCORERS_JSON = new WeakMap<Breakdown["scorers"], string>();

function scorersJson(scorers: Breakdown["scorers"]): string {
  let text = SCORERS_JSON.get(scorers);
  if (text === undefined) {
    text = JSON.stringify(scorers.map(({ name, weight }) => [name, weight]));
    SCORERS_JSON.set(scorers, text);
  }
  return text;
}

function finite(value: number): string {
  return Number.isFinite(value) ? (Object.is(value, -0) ? "-0" : String(value)) : "null";
}

function decodeBreakdown(fields: Fields): RecordedBreakdown {
  const scorers = fields.list("scorers").map((entry, i) => {
    const [name, weight] = Array.isArray(entry) ? (entry as unknown[]) : [];
    if (typeof name !== "string" || typeof weight !== "number")
      throw expected(`${fields.pathOf("scorers")}[${i}]`, "a name and a weight", entry);
    return { name, weight };
  });
  const rows = fields.list("rows");
  const candidates: CandidateRow[] = [];
  const totals = new Float64Array(rows.length);
  const values = new Float64Array(rows.length * scorers.length);
  rows.forEach((entry, i) => {
    const row = decodeRow(entry, ROW_COLUMNS + 1 + scorers.length, `${fields.pathOf("rows")}[${i}]`);
    candidates.push(row.candidate);
    totals[i] = row.numbers[0]!;
    for (let s = 0; s < scorers.length; s++) values[s * rows.length + i] = row.numbers[1 + s]!;
  });
  const endpointCount = fields.integer("endpoints", candidates.length);
  return {
    candidates,
    scorers,
    totals,
    values,
    endpointCount,
    clamped: fields.integer("clamped", 0, 0),
    digest: fields.integer("digest", 0),
  };
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
