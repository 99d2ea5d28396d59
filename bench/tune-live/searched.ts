import { existsSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { parse } from "yaml";
import type { ProfileSpec } from "#core/plugin/spec.ts";
import type { RolloutDocument } from "#config/rollout-section.ts";
import type { TuneAnswer } from "#shadow/tune/tune.ts";
import { Program } from "../closed-loop/program.ts";
import type { LiveTraffic } from "./traffic.ts";

/** What tune found, as an operator gets it. */
export interface Searched {
  readonly answer: TuneAnswer;
  /** Undefined where it looked at no other policy than the one in force. */
  readonly profile: { readonly name: string; readonly spec: ProfileSpec } | undefined;
  /** As it wrote it; without one where it recommends nothing. */
  readonly rollout: RolloutDocument | undefined;
}

export interface SearchFlags {
  readonly folder: string;
  readonly inForce: string;
  readonly trials: string;
  readonly profiles: readonly string[];
}

/** `gnomon tune` on all of the traffic, which searches on its first half. What is in the folder is taken from there. */
export async function searched(traffic: LiveTraffic, flags: SearchFlags): Promise<Searched> {
  const { folder } = flags;
  const [json, profileFile, rolloutFile] = ["tune.json", "profile.yaml", "tuned-rollout.yaml"].map((name) =>
    join(folder, name),
  ) as [string, string, string];
  if (!existsSync(json)) {
    for (const file of [profileFile, rolloutFile]) rmSync(file, { force: true });
    await Program.run({
      command: "tune",
      operands: [traffic.file],
      flags: {
        engine: traffic.one.engine,
        endpoints: traffic.one.engines,
        "step-error": 0.05,
        "in-force": flags.inForce,
        split: traffic.share,
        trials: flags.trials,
        budget: 600,
        profile: flags.profiles,
        "write-profile": profileFile,
        "write-rollout": rolloutFile,
        json,
      },
    });
  }
  const answer = JSON.parse(readFileSync(json, "utf8")) as TuneAnswer;
  if (!existsSync(profileFile)) {
    const candidate = answer.winner?.candidate;
    // Nobody recommends it; it shows whether there was something to be had.
    return { answer, profile: candidate && { name: "best-looked-at", spec: candidate.spec }, rollout: undefined };
  }
  const {
    name,
    summary: _summary,
    source: _source,
    ...spec
  } = parse(readFileSync(profileFile, "utf8")) as {
    name: string;
    summary: string;
    source: string;
  } & ProfileSpec;
  const rollout = parse(readFileSync(rolloutFile, "utf8")) as RolloutDocument;
  return { answer, profile: { name, spec }, rollout };
}
