import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { NamedProfile } from "#config/profile-file.ts";
import { signalsOfProfile } from "#config/profile-signals.ts";
import { MICROS_PER_MILLI } from "#core/base/units.ts";
import type { SimulationResult } from "#sim/simulate.ts";
import type { WorkloadRequest } from "#trace/workload-request.ts";
import { runCase } from "../profiles/run-case.ts";
import type { ChoiceCase, HalfName } from "./case.ts";
import { strangeFleet } from "./strange-fleet.ts";

/** What is looked at of each policy in each case; milliseconds, less is better. */
export const COLUMNS = ["e2eMean", "ttftMean", "e2eP99", "ttftP99"] as const;
export type Column = (typeof COLUMNS)[number];

/** One policy on one seed's traffic of a case. */
export interface Cell extends Readonly<Record<Column, number>> {
  readonly name: string;
  readonly half: HalfName;
  readonly seed: number;
  readonly policy: string;
  /** Of all that it follows from: what is run again only where this has changed. */
  readonly digest: string;
  readonly requests: number;
}

/**
 * Of the case, the policy and, for one of ours, the code that scores by times: the others' results stay as they are
 * while ours are worked on.
 */
export function digestOf(one: ChoiceCase, requestsMax: number, { name, spec }: NamedProfile): string {
  const isOurs = spec.scorers.some(({ plugin }) => TIMED_SCORERS.has(plugin));
  return createHash("sha256")
    .update(JSON.stringify([one, requestsMax, name, spec, isOurs ? (sources ??= readSources()) : ""]))
    .digest("hex")
    .slice(0, 16);
}

const TIMED_SCORERS = new Set(["added-latency", "predicted-latency"]);
let sources: string | undefined;

function readSources(): string {
  const folders = ["src/core/latency", "src/core/scorer"];
  const files = folders.flatMap((folder) => readdirSync(folder).map((file) => join(folder, file)));
  return files.map((file) => readFileSync(file, "utf8")).join("");
}

export function runCell(
  one: ChoiceCase,
  half: HalfName,
  seed: number,
  profile: NamedProfile,
  requestsMax: number,
  requests: readonly WorkloadRequest[],
  traces: string,
): Cell {
  const scrapeMicros = Math.round((one.scrapeMillis ?? signalsOfProfile(profile).intervalMillis) * MICROS_PER_MILLI);
  const { fleet, engines } = one;
  const study = {
    seed,
    requestsMax: Infinity,
    half: "all",
    engines,
    fleet: fleet === "strange" ? "even" : fleet,
    scrapeMicros,
  } as const;
  // Its pace is in the requests, for so many engines.
  const result = runCase({ rateScale: 8 / engines }, study, requests, profile, scrapeMicros, {
    ...(fleet === "strange" && { engines: strangeFleet(traces, engines, seed) }),
  });
  return {
    name: one.name,
    half,
    seed,
    policy: profile.name,
    digest: digestOf(one, requestsMax, profile),
    requests: requests.length,
    ...columnsOf(result),
  };
}

function columnsOf({ metrics }: SimulationResult): Record<Column, number> {
  const [ttft, e2e] = [metrics.ttftMicros["all"], metrics.e2eMicros["all"]];
  const millis = (micros: number | undefined): number => (micros ?? NaN) / MICROS_PER_MILLI;
  return {
    e2eMean: millis(e2e?.mean),
    ttftMean: millis(ttft?.mean),
    e2eP99: millis(e2e?.p99),
    ttftP99: millis(ttft?.p99),
  };
}
