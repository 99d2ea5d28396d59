import { Command } from "commander";
import { MICROS_PER_SECOND } from "#core/base/units.ts";
import { LastRun } from "#shadow/recorded/last-run.ts";
import type { TraceEngine, TraceHeader, TraceItem } from "#trace/codec/record.ts";
import type { QuantileFigures } from "#trace/transform/quantiles.ts";
import { recordedTraffic } from "#trace/transform/recorded-traffic.ts";
import { Tally } from "#trace/transform/tally.ts";
import { type TrafficFigures, TrafficSummary } from "#trace/transform/traffic-summary.ts";
import { addSourceFlags } from "./trace-flags.ts";
import { CommandFailure } from "#serve/process/command-failure.ts";
import { rateOf } from "../output/figure-text.ts";
import { openTrace, type SourceFlags, type TraceSource, withPlainErrors } from "./trace-source.ts";

/** What a recorded trace holds beside its requests. */
interface RecordedFacts {
  readonly runs: number;
  readonly segments: number;
  readonly records: readonly (readonly [string, number])[];
  readonly decisions: number;
  readonly rejected: number;
  readonly retries: number;
  readonly faults: readonly (readonly [string, number])[];
  readonly profiles: readonly (readonly [string, number])[];
  /** Who decided, where that was another router, and requests by how it is known where it sent them. */
  readonly observed?: { readonly router: string; readonly places: readonly (readonly [string, number])[] };
  readonly derived: readonly string[];
  readonly replayable: boolean;
  readonly dropped: number;
  /** Settings of the engines, as far as the header of the last run with a request states them. */
  readonly engine: TraceEngine | undefined;
}

export function infoCommand(): Command {
  const command = new Command("info")
    .description(
      "Show what a trace holds: requests, rates, lengths, sharing, conversations, endpoints, outcomes, losses.",
    )
    .argument("<trace>", "recorded trace or workload")
    .option("--json", "print JSON", false)
    .action((path: string, flags: SourceFlags & { readonly json: boolean }) => withPlainErrors(info(path, flags)));
  return addSourceFlags(command);
}

async function info(path: string, flags: SourceFlags & { readonly json: boolean }): Promise<void> {
  const source = await openTrace(path, flags);
  const summary = new TrafficSummary();
  const recorded = await summarize(source, summary);
  const figures = summary.figures();
  const notes = [...(recorded?.left ?? []), ...source.notes()];
  if (flags.json)
    process.stdout.write(
      `${JSON.stringify({ path, format: source.format, ...figures, recorded: recorded?.facts, engine: source.run?.engine, notes })}\n`,
    );
  else process.stdout.write(`${[...words(source, figures, recorded?.facts), ...notes].join("\n")}\n`);
  if (figures.requests === 0) throw new CommandFailure(`${path} has no request`);
}

async function summarize(source: TraceSource, summary: TrafficSummary) {
  if (source.reader === undefined) {
    for await (const one of source.traffic()) summary.add(one);
    return undefined;
  }
  const watch = new RecordWatch();
  const left = new Tally();
  for await (const one of recordedTraffic(watch.pass(source.reader.items()), left)) summary.add(one);
  return {
    facts: watch.facts(source.reader.report),
    left: left.entries().map(([reason, count]) => `${count} requests not in the figures: ${reason}`),
  };
}

/** Counts records as they go by. */
class RecordWatch {
  readonly #records = new Tally();
  readonly #faults = new Tally();
  readonly #profiles = new Tally();
  readonly #places = new Tally();
  #observed: string | undefined;
  #runs = 0;
  #decisions = 0;
  #rejected = 0;
  readonly #headers = new LastRun<TraceHeader>();
  #replayable = true;

  async *pass(items: AsyncIterable<TraceItem>): AsyncGenerator<TraceItem> {
    for await (const item of items) {
      this.#count(item);
      yield item;
    }
  }

  facts({ segments, dropped }: { readonly segments: number; readonly dropped: number }): RecordedFacts {
    return {
      runs: this.#runs,
      segments,
      records: this.#records.entries(),
      decisions: this.#decisions,
      rejected: this.#rejected,
      retries: this.#records.entries().find(([kind]) => kind === "request-retried")?.[1] ?? 0,
      faults: this.#faults.entries(),
      profiles: this.#profiles.entries(),
      ...(this.#observed !== undefined && { observed: { router: this.#observed, places: this.#places.entries() } }),
      derived: this.#headers.chosen?.derived?.steps ?? [],
      replayable: this.#replayable,
      dropped,
      engine: this.#headers.chosen?.engine,
    };
  }

  #count(item: TraceItem): void {
    if (item.kind === "run") {
      this.#runs++;
      this.#headers.begin(item.header);
      this.#observed = item.header.observed?.router ?? this.#observed;
      this.#replayable &&= item.header.derived?.replayable !== false;
      return;
    }
    this.#headers.take(item);
    if (item.kind === "gap") return;
    this.#records.count(item.input.kind);
    if (item.input.kind === "request-arrived" && item.input.observed !== undefined)
      this.#places.count(item.input.observed.by);
    if (item.input.kind === "attempt-failed") this.#faults.count(item.input.fault);
    if (item.decision === undefined) return;
    this.#decisions++;
    this.#profiles.count(item.decision.profile);
    if (item.decision.kind === "rejected") this.#rejected++;
  }
}

function words(source: TraceSource, figures: TrafficFigures, facts: RecordedFacts | undefined): string[] {
  const { requests, spanMicros, requestsPerSecond, requestsPerSecondMax, closedLoop } = figures;
  const rate = Number.isNaN(requestsPerSecond)
    ? ""
    : `, ${rateOf(requestsPerSecond)} a second, at most ${requestsPerSecondMax} in one`;
  const lines = [
    `${source.path}: ${source.format}, ${requests} requests in ${(spanMicros / MICROS_PER_SECOND).toFixed(1)} s${rate}`,
    ...lengthRows(figures),
    `shared     ${sharing(figures)}`,
    `sessions   ${conversations(figures)}`,
  ];
  if (closedLoop > 0) lines.push(`closed loop ${closedLoop} requests come when the turn before has ended`);
  for (const [name, list] of [
    ["models", figures.models],
    ["tenants", figures.tenants],
    ["outcomes", figures.outcomes],
    ["endpoints", figures.endpoints],
  ] as const)
    if (list.length > 0) lines.push(`${name.padEnd(10)} ${listed(list)}`);
  const engine = facts === undefined ? source.run?.engine : facts.engine;
  if (engine !== undefined) lines.push(`engine     ${listed(Object.entries(engine))}`);
  return facts === undefined ? lines : [...lines, ...recordedRows(facts)];
}

function recordedRows(facts: RecordedFacts): string[] {
  const lines = [
    `recording  ${facts.runs} runs, ${facts.segments} segments, ${facts.decisions} decisions, ${facts.rejected} rejected, ${facts.retries} retries, ${facts.dropped} records dropped`,
    `profiles   ${listed(facts.profiles)}`,
    `records    ${listed(facts.records)}`,
  ];
  if (facts.observed !== undefined) {
    const { router, places } = facts.observed;
    lines.push(`decided by ${router}, not by gnomon; where requests went is known by: ${listed(places)}`);
  }
  if (facts.faults.length > 0) lines.push(`faults     ${listed(facts.faults)}`);
  if (facts.derived.length > 0) lines.push(`made by    ${facts.derived.join("; ")}`);
  if (!facts.replayable) lines.push("It does not replay: decisions rest on requests that are not in it.");
  return lines;
}

function lengthRows(figures: TrafficFigures): string[] {
  const { promptTokens, outputTokens, cachedTokens, ttftMicros, e2eMicros, thinkMicros } = figures;
  const rows: readonly (readonly [string, QuantileFigures | undefined, number])[] = [
    ["prompt", promptTokens, 1],
    ["output", outputTokens, 1],
    ["cached", cachedTokens, 1],
    ["TTFT ms", ttftMicros, 1000],
    ["E2E ms", e2eMicros, 1000],
    ["think s", thinkMicros, 1e6],
  ];
  const heads = ["mean", "min", "p50", "p90", "p99", "max"] as const;
  const lines = [`${"".padEnd(10)}${heads.map((head) => head.padStart(11)).join("")}`];
  for (const [name, values, unit] of rows) {
    if (values === undefined) continue;
    const cells = heads.map((head) => number(values[head] / unit).padStart(11));
    lines.push(`${name.padEnd(10)}${cells.join("")}`);
  }
  return lines;
}

function sharing({ sharedBlocks, sharedBlocksSampled }: TrafficFigures): string {
  if (Number.isNaN(sharedBlocks)) return "not known: the trace holds nothing about content";
  const sampled =
    sharedBlocksSampled === 1 ? "" : `, estimated from ${(100 * sharedBlocksSampled).toFixed(1)} % of them`;
  return `${(100 * sharedBlocks).toFixed(1)} % of prompt blocks were in an earlier prompt${sampled}`;
}

function conversations({ conversations, conversationsNotCounted, turns }: TrafficFigures): string {
  if (turns === undefined) return "none named";
  const more = conversationsNotCounted === 0 ? "" : `, and turns of others: ${conversationsNotCounted}`;
  return `${conversations}; turns: mean ${turns.mean.toFixed(1)}, p50 ${turns.p50}, p90 ${turns.p90}, p99 ${turns.p99}, max ${turns.max}${more}`;
}

function listed(list: readonly (readonly [string, number | boolean])[]): string {
  const first = list.slice(0, 12).map(([name, value]) => `${name} ${String(value)}`);
  return list.length > 12 ? `${first.join(", ")}, and ${list.length - 12} more` : first.join(", ");
}

function number(value: number): string {
  return value >= 100 || Number.isInteger(value) ? String(Math.round(value)) : value.toFixed(2);
}
