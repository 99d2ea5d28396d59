import { finished } from "#core/base/finished.ts";
import { loadProfile, profileNames } from "#config/profile-file.ts";
import type { Candidate } from "#shadow/candidate/candidate.ts";
import { readDecidedRun } from "#shadow/reproduce/decided-run.ts";
import { reproduce } from "#shadow/reproduce/reproduce.ts";
import { TraceReader } from "#trace/reader.ts";
import type { LongWork } from "../long-work/long-work.ts";
import { likelyFirst } from "./likely-profiles.ts";
import { sentence } from "./reproduction-text.ts";

/** Enough to name a policy by; `reproduce` looks at more. */
const DECISIONS_MAX = 3_000;
const CANDIDATES_MAX = 600;

/** The policy that stands for another router's in simulations of its traffic, and what is known of how well it does. */
export async function reproducedPolicy(
  path: string,
  router: string,
  work?: LongWork,
): Promise<{ readonly candidate: Candidate; readonly notes: readonly string[] }> {
  const run = await readDecidedRun(new TraceReader(path).items(), DECISIONS_MAX);
  const profiles = profileNames().map(loadProfile);
  const steps = reproduce({ run, profiles: likelyFirst(profiles, router), candidatesMax: CANDIDATES_MAX });
  const found = work === undefined ? finished(steps) : await work.inTurns(steps, "walks through the trace");
  const { base, spec } = found.best;
  const known = new Map(profiles.map((one) => [one.name, one]));
  return { candidate: { name: `${router} (as ${base})`, spec }, notes: [sentence(found, known)] };
}
