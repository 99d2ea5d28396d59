import { loadProfile } from "#config/profile-file.ts";
import { MICROS_PER_SECOND } from "#core/base/units.ts";
import { type Case, CASES, ENGINES_DEFAULT, type Study } from "../profiles/case.ts";
import { caseWorkload } from "../profiles/case-workload.ts";
import { runCase } from "../profiles/run-case.ts";
import type { Sample } from "./sample.ts";
import { SampleBook } from "./sample-book.ts";

export interface VirtualOptions {
  readonly traces: string;
  readonly requests: number;
  readonly fleet: Study["fleet"];
  readonly seed: number;
}

/** The cases that are asked for by names such as "mooncake-moderate". */
export function casesNamed(names: readonly string[]): readonly Case[] {
  return CASES.filter(({ workload, load }) => names.includes(`${workload}-${load}`));
}

/** Every decision of a simulated run under gnomon-predicted, gauges read every second. */
export async function virtualSamples(one: Case, options: VirtualOptions): Promise<readonly Sample[]> {
  const { traces, requests, fleet, seed } = options;
  const study: Study = {
    seed,
    requestsMax: requests,
    half: "all",
    engines: ENGINES_DEFAULT,
    fleet,
    scrapeMicros: MICROS_PER_SECOND,
  };
  const workload = await caseWorkload({ ...one, copies: 1 }, study, traces);
  const book = new SampleBook();
  runCase(one, study, workload, loadProfile("gnomon-predicted"), MICROS_PER_SECOND, { observe: book.take });
  return book.samples;
}
