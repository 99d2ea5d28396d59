import { MICROS_PER_SECOND, type Micros } from "#core/base/units.ts";
import type { EngineGauges } from "#engine/sink.ts";
import type { EngineFleet } from "../fleet/engine-fleet.ts";
import type { Outcomes } from "./outcomes.ts";
import { type Anomalies, findAnomalies } from "./anomalies.ts";
import type { NumberColumn } from "./column.ts";
import { type Distribution, distribution } from "./distribution.ts";
import { sessionTimes } from "./session-times.ts";
import { meetsTarget, type SloTargets, targetOf, outcomeTpot } from "./slo.ts";

/** Distributions by SLO class, "all" for all requests together; requests without a class are in "". */
type ByClass = Readonly<Record<string, Distribution>>;

/**
 * The figures of BLIS's evaluation result. Times in microseconds; rates per simulated second, from time 0 to the last
 * end.
 */
export interface Metrics extends Anomalies {
  readonly ttftMicros: ByClass;
  readonly tpotMicros: ByClass;
  readonly e2eMicros: ByClass;
  readonly queueDelayMicros: ByClass;
  /** Session completion times; undefined where no session was answered whole. */
  readonly sessionMicros: Distribution | undefined;
  /** Every gap between two tokens; only where they were recorded. */
  readonly itlMicros: Distribution | undefined;
  readonly requestsPerSec: number;
  readonly tokensPerSec: number;
  /** Share of a class's requests that met all its targets; classes without targets are left out. */
  readonly sloAttainment: Readonly<Record<string, number>>;
  /** Of all requests whose class has targets; undefined where none has. */
  readonly sloAttainmentAll: number | undefined;
  /** Requests per second that met their class's targets; undefined without targets. */
  readonly goodputPerSec: number | undefined;
  /** (sum x)^2 / (n * sum x^2) over tenants' output tokens; 1 is fair. */
  readonly jainFairnessIndex: number;
  /** Share of prompt tokens found in the engines' own cache, and copied back from their second tier. */
  readonly cacheHitRate: { readonly gpu: number; readonly cpu: number };
  /** Preemptions per completed request. */
  readonly preemptionRate: number;
  /** Blocks copied to the second tier; the same per KV block that was filled. */
  readonly offloadedBlocks: number;
  readonly offloadRate: number;
  /** Blocks copied back that had hardly left, per block copied out. */
  readonly kvThrashingRate: number;
}

/** A simulation's metrics from its outcomes; `gaps` are the gaps between tokens, where they were kept. */
export function metricsOf(
  outcomes: Outcomes,
  fleet: EngineFleet,
  endedAt: Micros,
  gaps: NumberColumn<Float64Array> | undefined,
  targets: SloTargets,
): Metrics {
  const seconds = endedAt / MICROS_PER_SECOND;
  const totals = totalsOf(outcomes);
  const tier = tierTotals(fleet, endedAt);
  return {
    ttftMicros: byClass(outcomes, outcomes.ttft),
    tpotMicros: byClass(outcomes, tpots(outcomes)),
    e2eMicros: byClass(outcomes, outcomes.e2e),
    queueDelayMicros: byClass(outcomes, outcomes.queueDelay),
    sessionMicros: distribution(sessionTimes(outcomes).filter((micros) => !Number.isNaN(micros))),
    itlMicros: gaps === undefined ? undefined : distribution(gaps.view().slice()),
    requestsPerSec: perSecond(totals.completed, seconds),
    tokensPerSec: perSecond(totals.outputTokens, seconds),
    ...sloFigures(outcomes, targets, seconds),
    jainFairnessIndex: jain(outcomes),
    cacheHitRate: {
      gpu: shareOf(Math.max(0, totals.cached - tier.hitTokens), totals.servedPrompt),
      cpu: shareOf(tier.hitTokens, totals.servedPrompt),
    },
    preemptionRate: shareOf(totals.preemptions, totals.completed),
    offloadedBlocks: tier.copiedOut,
    offloadRate: shareOf(tier.copiedOut, tier.filled),
    kvThrashingRate: shareOf(tier.thrashed, tier.copiedOut),
    ...findAnomalies(outcomes),
  };
}

function tierTotals(fleet: EngineFleet, endedAt: Micros) {
  const totals = { hitTokens: 0, filled: 0, copiedOut: 0, thrashed: 0 };
  for (let number = 0; number < fleet.size; number++) {
    for (const gauges of fleet.gaugesOfAll(endedAt + 1, number)) {
      totals.hitTokens += gauges.tierHitsTokens;
      totals.filled += gauges.blockMisses;
      totals.copiedOut += gauges.tierBlocksCopiedOut;
      totals.thrashed += gauges.tierBlocksThrashed;
    }
  }
  return totals;
}

function shareOf(part: number, whole: number): number {
  return whole === 0 ? 0 : part / whole;
}

export interface EndpointFigures {
  readonly endpoint: string;
  readonly requests: number;
  readonly completed: number;
  readonly outputTokens: number;
  readonly cacheHitRate: number;
  readonly ttftMicrosMean: number | undefined;
  readonly e2eMicrosMean: number | undefined;
  readonly steps: number;
  readonly preemptions: number;
  readonly blockHits: number;
  readonly blockMisses: number;
}

/** The same by endpoint, in the order in which they joined. */
export function endpointFigures(outcomes: Outcomes, fleet: EngineFleet, endedAt: Micros): EndpointFigures[] {
  const groups = grouped(outcomes, outcomes.endpoint, fleet.size);
  return fleet.specs.map(({ endpoint }, number) => {
    const engines = fleet.gaugesOfAll(endedAt + 1, number);
    const sum = (of: (gauges: EngineGauges) => number): number => engines.reduce((total, one) => total + of(one), 0);
    return {
      endpoint: endpoint.id,
      ...figures(groups[number]!),
      steps: sum(({ steps }) => steps),
      preemptions: sum(({ preemptions }) => preemptions),
      blockHits: sum(({ blockHits }) => blockHits),
      blockMisses: sum(({ blockMisses }) => blockMisses),
    };
  });
}

export interface TenantFigures {
  readonly tenant: string;
  readonly requests: number;
  readonly completed: number;
  readonly outputTokens: number;
  readonly cacheHitRate: number;
  readonly ttftMicrosMean: number | undefined;
  readonly e2eMicrosMean: number | undefined;
}

/** In the order in which tenants came. */
export function tenantFigures(outcomes: Outcomes): TenantFigures[] {
  const groups = grouped(outcomes, outcomes.tenant, outcomes.tenants.length);
  return outcomes.tenants.map((tenant, number) => ({ tenant, ...figures(groups[number]!) }));
}

interface Group {
  requests: number;
  completed: number;
  outputTokens: number;
  promptTokens: number;
  cachedTokens: number;
  ttft: number;
  firstTokens: number;
  e2e: number;
}

function grouped(outcomes: Outcomes, groupOf: Int16Array | Uint16Array, count: number): Group[] {
  const groups = Array.from({ length: count }, (): Group => ({
    requests: 0,
    completed: 0,
    outputTokens: 0,
    promptTokens: 0,
    cachedTokens: 0,
    ttft: 0,
    firstTokens: 0,
    e2e: 0,
  }));
  for (let row = 0; row < outcomes.length; row++) {
    const group = groups[groupOf[row]!];
    if (group === undefined) continue;
    group.requests++;
    group.outputTokens += outcomes.tokensOf(row);
    if (!Number.isNaN(outcomes.queueDelay[row]!)) {
      group.promptTokens += outcomes.promptTokens[row]!;
      group.cachedTokens += outcomes.cachedTokens[row]!;
    }
    const ttft = outcomes.ttft[row]!;
    if (!Number.isNaN(ttft)) {
      group.ttft += ttft;
      group.firstTokens++;
    }
    if (!outcomes.isCompleted(row)) continue;
    group.completed++;
    group.e2e += outcomes.e2e[row]!;
  }
  return groups;
}

function figures(group: Group): Omit<TenantFigures, "tenant"> {
  return {
    requests: group.requests,
    completed: group.completed,
    outputTokens: group.outputTokens,
    cacheHitRate: group.promptTokens === 0 ? 0 : group.cachedTokens / group.promptTokens,
    ttftMicrosMean: group.firstTokens === 0 ? undefined : group.ttft / group.firstTokens,
    e2eMicrosMean: group.completed === 0 ? undefined : group.e2e / group.completed,
  };
}

function totalsOf(outcomes: Outcomes) {
  const totals = { completed: 0, outputTokens: 0, servedPrompt: 0, cached: 0, preemptions: 0 };
  for (let row = 0; row < outcomes.length; row++) {
    if (outcomes.isCompleted(row)) totals.completed++;
    totals.outputTokens += outcomes.tokensOf(row);
    totals.preemptions += outcomes.preemptions[row]!;
    if (Number.isNaN(outcomes.queueDelay[row]!)) continue;
    totals.servedPrompt += outcomes.promptTokens[row]!;
    totals.cached += outcomes.cachedTokens[row]!;
  }
  return totals;
}

/** Time per output token of those that were served to their end, a row each. */
function tpots(outcomes: Outcomes): Float64Array {
  const values = new Float64Array(outcomes.length);
  for (let row = 0; row < values.length; row++)
    values[row] = outcomes.isCompleted(row) ? outcomeTpot(outcomes, row) : NaN;
  return values;
}

/** A row for each outcome; NaN counts for nothing. */
function byClass(outcomes: Outcomes, values: Float64Array): ByClass {
  const { classes } = outcomes;
  const columns = classes.length === 1 ? [known(values)] : columnsOf(outcomes, values);
  const named = classes.map((name, number) => [name, distribution(columns[number]!)] as const);
  const all = classes.length === 1 ? named[0]![1] : distribution(known(values));
  const found = (entry: readonly [string, Distribution | undefined]): entry is readonly [string, Distribution] =>
    entry[1] !== undefined;
  return Object.fromEntries([["all", all] as const, ...named.sort(([a], [b]) => (a < b ? -1 : 1))].filter(found));
}

/** Of each class those that are known. */
function columnsOf({ classes, sloClass }: Outcomes, values: Float64Array): Float64Array[] {
  const counts = new Uint32Array(classes.length);
  for (let row = 0; row < values.length; row++) if (!Number.isNaN(values[row]!)) counts[sloClass[row]!]!++;
  const columns = Array.from(counts, (count) => new Float64Array(count));
  const places = new Uint32Array(counts.length);
  for (let row = 0; row < values.length; row++) {
    const value = values[row]!;
    if (!Number.isNaN(value)) columns[sloClass[row]!]![places[sloClass[row]!]!++] = value;
  }
  return columns;
}

function known(values: Float64Array): Float64Array {
  const kept = new Float64Array(values.length);
  let count = 0;
  for (let i = 0; i < values.length; i++) {
    const value = values[i]!;
    if (!Number.isNaN(value)) kept[count++] = value;
  }
  return kept.subarray(0, count);
}

function sloFigures(
  outcomes: Outcomes,
  targets: SloTargets,
  seconds: number,
): Pick<Metrics, "sloAttainment" | "sloAttainmentAll" | "goodputPerSec"> {
  const requests = new Uint32Array(outcomes.classes.length);
  const met = new Uint32Array(outcomes.classes.length);
  const targetsOf = outcomes.classes.map((name) => targetOf(targets, name));
  let good = 0;
  for (let row = 0; row < outcomes.length; row++) {
    const sloClass = outcomes.sloClass[row]!;
    const target = targetsOf[sloClass];
    if (target === undefined) continue;
    requests[sloClass]!++;
    if (!meetsTarget(outcomes, row, target)) continue;
    met[sloClass]!++;
    good++;
  }
  const named = outcomes.classes.flatMap((name, number) =>
    targetsOf[number] === undefined ? [] : [[name, met[number]! / requests[number]!] as const],
  );
  return {
    sloAttainment: Object.fromEntries(named.sort(([a], [b]) => (a < b ? -1 : 1))),
    sloAttainmentAll: named.length === 0 ? undefined : good / requests.reduce((sum, count) => sum + count, 0),
    goodputPerSec: named.length === 0 ? undefined : perSecond(good, seconds),
  };
}

function jain(outcomes: Outcomes): number {
  const tokens = new Float64Array(outcomes.tenants.length);
  for (let row = 0; row < outcomes.length; row++) tokens[outcomes.tenant[row]!]! += outcomes.tokensOf(row);
  let sum = 0;
  let squares = 0;
  for (const x of tokens) {
    sum += x;
    squares += x * x;
  }
  return squares === 0 ? 1 : (sum * sum) / (tokens.length * squares);
}

function perSecond(count: number, seconds: number): number {
  return seconds === 0 ? 0 : count / seconds;
}
