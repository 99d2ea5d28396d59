import { existsSync, writeFileSync } from "node:fs";
import { Command, InvalidArgumentError } from "commander";
import { ConfigError } from "#config/config-error.ts";
import { loadEngine } from "#config/engine-file.ts";
import { loadProfile } from "#config/profile-file.ts";
import { MICROS_PER_MILLI } from "#core/units.ts";
import type { EngineConfig } from "#engine/config.ts";
import type { Candidate, CandidateOutcome, Setting } from "#shadow/candidate.ts";
import { capped, prefixOf } from "#shadow/cap.ts";
import { type Observed, readRecordedRun } from "#shadow/recorded-run.ts";
import { whatIf } from "#shadow/what-if.ts";
import { openWorkload } from "#trace/import/open-workload.ts";
import { IMPORT_DEFAULTS } from "#trace/import/import-options.ts";
import { TraceReader } from "#trace/reader.ts";
import { isTrace } from "#trace/segment-name.ts";
import type { WorkloadRequest } from "#trace/workload-request.ts";
import { CommandFailure } from "./program.ts";
import { writeWhatIfPage } from "./what-if-html.ts";
import { whatIfTable } from "./what-if-table.ts";

interface WhatIfFlags {
  readonly profile: readonly string[];
  readonly inForce?: string;
  readonly engine?: string;
  readonly endpoints?: number;
  readonly capped?: number;
  readonly limit?: number;
  readonly rateScale: number;
  readonly scrapeInterval: number;
  readonly requestDelay: number;
  readonly answerDelay: number;
  readonly seed: number;
  readonly json?: string;
  readonly html?: string;
}

/** A question's traffic, wherever it comes from. */
interface Traffic {
  readonly workload: readonly WorkloadRequest[];
  readonly observed: readonly Observed[] | undefined;
  readonly inForce: Candidate;
  readonly setting: Pick<Setting, "endpoints" | "fleetEvents" | "blockTokens" | "staleAfterMicros" | "seed">;
  readonly notes: readonly string[];
}

const ENDPOINTS_DEFAULT = 4;
const STALE_AFTER_MILLIS = 5_000;

/** Asks what other profiles would have done with recorded traffic. */
export function whatIfCommand(): Command {
  return new Command("what-if")
    .description("Simulate recorded traffic under other profiles, beside the one in force and the model's own error.")
    .argument(
      "<trace>",
      "folder that --record wrote, or a recorded workload (Mooncake, Azure, WEKA, LMCache, token ids)",
    )
    .option("--profile <name...>", "profiles to ask about, by name or path; repeat for more", [])
    .option("--in-force <name>", "profile that the traffic was routed by (default: the trace's own, else gnomon)")
    .option("--engine <file>", "engine by name or path, best one that calibrate wrote (default: emulated-default)")
    .option("--endpoints <n>", "so many equal endpoints instead of the recorded ones", whole)
    .option("--capped <turns>", "only the first turns of each conversation", whole)
    .option("--limit <n>", "requests at most", whole)
    .option("--rate-scale <x>", "arrivals so many times as fast", positive, 1)
    .option("--scrape-interval <millis>", "time between two scrapes of an endpoint", positive, 1000)
    .option("--request-delay <micros>", "from the decision until the engine has the request", whole, 0)
    .option("--answer-delay <micros>", "from the engine until the client has a token", whole, 0)
    .option("--seed <n>", "of the router's draws where the trace has none, and of the intervals", whole, 0)
    .option("--json <file>", "write the answer as JSON; - for stdout, without the table")
    .option("--html <file>", "write the answer as a page to look at, which loads nothing")
    .action(answer);
}

async function answer(path: string, flags: WhatIfFlags): Promise<void> {
  if (!existsSync(path))
    throw new ConfigError([`what-if: expected a trace or a workload, got ${path}, which is not there`]);
  const engine = loadEngine(flags.engine ?? "emulated-default");
  const candidates = flags.profile.map((name): Candidate => namedProfile(name));
  const traffic = (await isTrace(path)) ? await recorded(path, flags) : await foreign(path, flags, engine);
  const workload = capped(prefixOf(traffic.workload, flags.limit), flags.capped);
  if (workload.length === 0) throw new CommandFailure(`${path} has no request that can be simulated`);
  for (const note of traffic.notes) process.stderr.write(`note: ${note}\n`);
  const startedAt = performance.now();
  const setting: Setting = {
    ...traffic.setting,
    workload: workload.map((request, index) => ({ ...request, index })),
    engine,
    signals: {
      mode: "scrape",
      intervalMicros: flags.scrapeInterval * MICROS_PER_MILLI,
      phase: "spread",
      delayMicros: 0,
      lossShare: 0,
    },
    requestMicros: flags.requestDelay,
    answerMicros: flags.answerDelay,
    rateScale: flags.rateScale,
  };
  const observed = comparable(flags)
    ? traffic.observed && workload.map(({ index }) => traffic.observed![index]!)
    : undefined;
  let outcomes: readonly CandidateOutcome[] = [];
  const result = await whatIf({
    setting,
    inForce: traffic.inForce,
    candidates,
    observed,
    onOutcomes: (all) => (outcomes = all),
    progress: (done, all) => process.stderr.isTTY && process.stderr.write(`\r${done} of ${all} profiles`),
  });
  if (process.stderr.isTTY) process.stderr.write("\r\x1b[K");
  const seconds = (performance.now() - startedAt) / 1000;
  if (flags.json !== undefined) write(flags.json, `${JSON.stringify(result)}\n`);
  if (flags.html !== undefined) {
    const profiles = [traffic.inForce, ...candidates];
    const input = { path, engine: flags.engine ?? "emulated-default", setting, profiles, outcomes, observed };
    writeWhatIfPage(flags.html, result, { ...input, notes: traffic.notes });
  }
  if (flags.json !== "-") process.stdout.write(whatIfTable(result));
  process.stderr.write(
    `${workload.length} requests x ${result.candidates.length} profiles in ${seconds.toFixed(1)} s\n`,
  );
}

/** Another fleet or another rate is another experiment: what happened says nothing of the model's error in it. */
function comparable({ endpoints, rateScale, capped: turns }: WhatIfFlags): boolean {
  return endpoints === undefined && rateScale === 1 && turns === undefined;
}

async function recorded(path: string, flags: WhatIfFlags): Promise<Traffic> {
  const reader = new TraceReader(path);
  const run = await readRecordedRun(reader.items()).catch((error: unknown) => {
    throw new CommandFailure(error instanceof Error ? error.message : String(error));
  });
  const { router } = run.header;
  const spec = router.profiles[router.defaultProfile];
  if (spec === undefined) throw new CommandFailure(`${path} does not hold the profile that was in force`);
  const left = Object.entries({ ...run.left, ...reader.report.skipped });
  return {
    workload: run.workload,
    observed: run.observed,
    inForce: flags.inForce === undefined ? { name: router.defaultProfile, spec } : namedProfile(flags.inForce),
    setting: {
      endpoints: flags.endpoints === undefined ? run.endpoints : numbered(flags.endpoints),
      fleetEvents: flags.endpoints === undefined ? run.fleetEvents : [],
      blockTokens: router.blockTokens,
      staleAfterMicros: router.staleAfterMicros,
      seed: router.seed,
    },
    notes: left.map(([reason, count]) => `${count} left out: ${reason}`),
  };
}

async function foreign(path: string, flags: WhatIfFlags, engine: EngineConfig): Promise<Traffic> {
  const { report, requests } = await openWorkload(path, { ...IMPORT_DEFAULTS, seed: flags.seed });
  const workload: WorkloadRequest[] = [];
  for await (const request of requests) if (workload.push(request) === flags.limit) break;
  return {
    workload,
    observed: undefined,
    inForce: namedProfile(flags.inForce ?? "gnomon"),
    setting: {
      endpoints: numbered(flags.endpoints ?? ENDPOINTS_DEFAULT),
      fleetEvents: [],
      blockTokens: engine.blockTokens,
      staleAfterMicros: STALE_AFTER_MILLIS * MICROS_PER_MILLI,
      seed: flags.seed,
    },
    notes: [...report.refused].map(([reason, count]) => `${count} left out: ${reason}`),
  };
}

function namedProfile(nameOrPath: string): Candidate {
  const { name, spec } = loadProfile(nameOrPath);
  return { name, spec };
}

function numbered(count: number): Setting["endpoints"] {
  const digits = String(count - 1).length;
  return Array.from({ length: count }, (_, i) => ({
    id: `endpoint_${String(i).padStart(digits, "0")}`,
    models: [],
    labels: {},
    kvCapacityTokens: undefined,
    concurrencyMax: undefined,
  }));
}

function write(file: string, text: string): void {
  if (file === "-") process.stdout.write(text);
  else writeFileSync(file, text);
}

function whole(text: string): number {
  const value = Number(text);
  if (!Number.isSafeInteger(value) || value < 0) throw new InvalidArgumentError("expected a whole number of 0 or more");
  return value;
}

function positive(text: string): number {
  const value = Number(text);
  if (!(value > 0 && Number.isFinite(value))) throw new InvalidArgumentError("expected a number above 0");
  return value;
}
