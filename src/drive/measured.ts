import { seenTpotMicros } from "#core/latency/latency-model.ts";
import { MICROS_PER_MILLI, MICROS_PER_SECOND } from "#core/base/units.ts";
import { summarize, type DistributionSummary } from "./distribution-summary.ts";
import { isFailure } from "./exchange-result.ts";
import { hitEstimate } from "./hit-estimate.ts";
import type { DriveReport, EndpointReport } from "./report.ts";
import type { SampleLog } from "./sample-log.ts";

/** Mean of the values that are numbers, or null. */
function mean(values: Iterable<number>): number | null {
  return summarize(values).mean;
}

function* where(log: SampleLog, keep: (at: number) => boolean, valueOf: (at: number) => number): Generator<number> {
  for (let at = 0; at < log.size; at++) if (keep(at)) yield valueOf(at);
}

/** TTFT, TPOT and E2E of a request, ms; NaN where it had none. */
function latencies(log: SampleLog): Record<"ttft" | "tpot" | "e2e" | "drift", (at: number) => number> {
  const [due, sent, first] = [log.column("dueMicros"), log.column("sentMicros"), log.column("firstTokenMicros")];
  const [last, end, tokens] = [log.column("lastTokenMicros"), log.column("endMicros"), log.column("completionTokens")];
  const sequences = log.column("sequences");
  const tpotMicros = (at: number) => seenTpotMicros(first[at], last[at] ?? Number.NaN, tokens[at], sequences[at] ?? 1);
  const millis = (from: Float64Array, to: Float64Array, at: number) =>
    ((to[at] ?? Number.NaN) - (from[at] ?? Number.NaN)) / MICROS_PER_MILLI;
  return {
    ttft: (at) => millis(sent, first, at),
    tpot: (at) => (tpotMicros(at) ?? Number.NaN) / MICROS_PER_MILLI,
    e2e: (at) => millis(sent, end, at),
    drift: (at) => millis(due, sent, at),
  };
}

type Measured = Pick<
  DriveReport,
  | "seconds"
  | "outcomes"
  | "throughput"
  | "ttftMillis"
  | "tpotMillis"
  | "e2eMillis"
  | "tokens"
  | "outputsShorterThanAsked"
  | "hitRatio"
  | "hitEstimate"
  | "endpoints"
>;

/** All figures that follow from the finished requests. Latencies are of requests that ended ok. */
export function measured(log: SampleLog): Measured & { readonly driftMillis: DistributionSummary } {
  const ok = (at: number) => log.outcomes[at] === "ok";
  const { ttft, tpot, e2e, drift } = latencies(log);
  const [prompt, cached, output] = [
    log.column("promptTokens"),
    log.column("cachedTokens"),
    log.column("completionTokens"),
  ];
  const wanted = log.column("wantedOutputTokens");
  const seconds = spanSeconds(log);
  const outcomes: Record<string, number> = {};
  for (const outcome of log.outcomes) outcomes[outcome] = (outcomes[outcome] ?? 0) + 1;
  const tokens = {
    prompt: sum(where(log, ok, (at) => prompt[at] ?? 0)),
    cached: sum(where(log, ok, (at) => cached[at] ?? 0)),
    output: sum(where(log, ok, (at) => output[at] ?? 0)),
  };
  const perSecond = (amount: number) => (seconds > 0 ? amount / seconds : 0);
  return {
    seconds,
    outcomes,
    throughput: {
      requestsPerSecond: perSecond(outcomes["ok"] ?? 0),
      promptTokensPerSecond: perSecond(tokens.prompt),
      outputTokensPerSecond: perSecond(tokens.output),
    },
    ttftMillis: summarize(where(log, ok, ttft)),
    tpotMillis: summarize(where(log, ok, tpot)),
    e2eMillis: summarize(where(log, ok, e2e)),
    driftMillis: summarize(where(log, () => true, drift)),
    tokens,
    outputsShorterThanAsked: sum(where(log, ok, (at) => ((output[at] ?? 0) < (wanted[at] ?? 0) ? 1 : 0))),
    hitRatio: {
      engine: ratio(log, ok, cached),
      gateway: ratio(log, ok, log.column("gatewayHitTokens")),
    },
    hitEstimate: hitEstimate(
      log.column("gatewayHitTokens"),
      cached,
      where(log, ok, (at) => at),
    ),
    endpoints: endpointsOf(log),
  };
}

/** Requests that ended before the gateway reported who serves them. */
const NOT_REPORTED = "(not reported)";

function endpointsOf(log: SampleLog): EndpointReport[] {
  const { ttft, e2e } = latencies(log);
  const cached = log.column("cachedTokens");
  const places = new Map(log.endpointNames.map((endpoint, index) => [endpoint, index]));
  for (let at = 0; at < log.size; at++) if (log.endpointOf(at) < 0) places.set(NOT_REPORTED, -1);
  const rows = Array.from(places, ([endpoint, index]) => {
    const here = (at: number) => log.endpointOf(at) === index;
    const okHere = (at: number) => here(at) && log.outcomes[at] === "ok";
    const requests = sum(where(log, here, () => 1));
    return {
      endpoint,
      requests,
      share: requests / log.size,
      failed: sum(where(log, here, (at) => (isFailure(log.outcomes[at] ?? "ok") ? 1 : 0))),
      ttftMillisMean: mean(where(log, okHere, ttft)),
      e2eMillisMean: mean(where(log, okHere, e2e)),
      hitRatio: ratio(log, okHere, cached),
    };
  });
  return rows.sort((a, b) => (a.endpoint < b.endpoint ? -1 : 1));
}

/** Sum of `part` over the sum of prompt tokens, of the requests that reported both; null when none did. */
function ratio(log: SampleLog, keep: (at: number) => boolean, part: Float64Array): number | null {
  const prompt = log.column("promptTokens");
  const reported = (at: number) => keep(at) && !Number.isNaN(part[at] ?? Number.NaN) && (prompt[at] ?? 0) > 0;
  const whole = sum(where(log, reported, (at) => prompt[at] ?? 0));
  return whole === 0 ? null : sum(where(log, reported, (at) => part[at] ?? 0)) / whole;
}

function spanSeconds(log: SampleLog): number {
  let first = Number.POSITIVE_INFINITY;
  let last = 0;
  const [sent, end] = [log.column("sentMicros"), log.column("endMicros")];
  for (let at = 0; at < log.size; at++) {
    first = Math.min(first, sent[at] ?? 0);
    last = Math.max(last, end[at] ?? 0);
  }
  return log.size === 0 ? 0 : (last - first) / MICROS_PER_SECOND;
}

function sum(values: Iterable<number>): number {
  let total = 0;
  for (const value of values) if (!Number.isNaN(value)) total += value;
  return total;
}
