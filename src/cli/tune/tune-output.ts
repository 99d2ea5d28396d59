import { createHash } from "node:crypto";
import { exportAibrix } from "#config/export-aibrix.ts";
import { exportLlmD } from "#config/export-llm-d.ts";
import { exportSmg, isSmgKind, smgCommandLine } from "#config/export-smg.ts";
import type { ProfileSignals } from "#config/profile-signals.ts";
import type { ProfileSpec } from "#core/plugin/spec.ts";
import { MICROS_PER_MILLI } from "#core/base/units.ts";
import type { Candidate } from "#shadow/candidate/candidate.ts";
import type { Objective } from "#shadow/job/objective.ts";
import type { Found } from "#shadow/tune/search.ts";
import type { TuneAnswer } from "#shadow/tune/tune.ts";
import { policyKey } from "#shadow/tune/policy-space.ts";
import { percentOf } from "../output/figure-text.ts";
import { writeOutput } from "#drive/output-file.ts";
import { yamlText } from "../output/yaml-text.ts";

const DIGEST_CHARS = 8;

/** The same name for the same policy, so that a rollout and a profile of it go together. */
export function tunedName(spec: ProfileSpec): string {
  return `tuned-${createHash("sha256").update(policyKey(spec)).digest("hex").slice(0, DIGEST_CHARS)}`;
}

/** What a policy was made from, or its name where it is one to begin with. */
export function originText({ origin, candidate }: Found): string {
  return origin === "" ? candidate.name : origin;
}

/** A profile file, as --profile and routing.profile take it. */
export function tunedProfileText(found: Candidate, answer: TuneAnswer): string {
  const { name, spec } = found;
  const { winner, heldOut, inForce, objective } = answer;
  const gain = heldOut?.gain;
  const how =
    gain === undefined
      ? ""
      : `gains ${percentOf(gain.value)} (${percentOf(gain.low)} to ${percentOf(gain.high)}) over ${inForce}, predicted`;
  const what = objectiveWords(objective);
  return yamlText({
    name,
    summary: `found by tune for ${what}: ${how}`,
    source: `gnomon tune, from ${winner === undefined ? inForce : originText(winner)}`,
    ...statedSignals(found),
    ...spec,
  });
}

function objectiveWords(objective: Objective): string {
  switch (objective.kind) {
    case "time":
      return `${objective.metric} ${objective.figure}`;
    case "session":
      return `sessionMicros ${objective.figure}`;
    default:
      return objective.kind;
  }
}

/** The section `signals` of a candidate that was simulated under its own. */
export function statedSignals({ gauges }: Candidate): { readonly signals?: ProfileSignals } {
  if (gauges?.signals.mode !== "scrape") return {};
  const { intervalMicros, delayMicros } = gauges.signals;
  const [intervalMillis, delayMillis] = [intervalMicros / MICROS_PER_MILLI, delayMicros / MICROS_PER_MILLI];
  return { signals: { intervalMillis, delayMillis, source: "gnomon tune, which found it under these" } };
}

/** Writes what another router takes, and returns what to print: where it went, or why it could not be expressed. */
export function writeExports(
  spec: ProfileSpec,
  files: {
    readonly for: string;
    readonly writeLlmD?: string;
    readonly writeAibrix?: string;
    readonly writeOptions?: string;
  },
): string[] {
  const notes: string[] = [];
  const { writeLlmD, writeAibrix, writeOptions } = files;
  if (writeLlmD !== undefined) {
    const exported = exportLlmD(spec);
    if (exported.ok) writeOutput(writeLlmD, yamlText(exported.value));
    else notes.push(...exported.reasons.map((reason) => `--write-llm-d: not expressible: ${reason}`));
  }
  if (writeAibrix !== undefined) {
    const exported = exportAibrix(spec);
    const lines = exported.ok ? Object.entries(exported.value).map(([name, value]) => `${name}=${value}\n`) : [];
    if (exported.ok) writeOutput(writeAibrix, lines.join(""));
    else notes.push(...exported.reasons.map((reason) => `--write-aibrix: not expressible: ${reason}`));
  }
  if (writeOptions !== undefined && isSmgKind(files.for)) {
    const exported = exportSmg(spec, files.for);
    if (exported.ok) writeOutput(writeOptions, `${smgCommandLine(exported.value)}\n`);
    else notes.push(...exported.reasons.map((reason) => `--write-options: not expressible: ${reason}`));
  }
  return notes;
}
