import type { ProfileSpec } from "#core/plugin/spec.ts";
import { checkProfile } from "#core/profile/check.ts";
import type { FleetEvent } from "#sim/setting/simulation-options.ts";
import type { TraceHeader, TraceRouter } from "#trace/codec/record.ts";
import { routerAfter } from "#trace/transform/router-after.ts";
import type { Candidate } from "./candidate.ts";

/**
 * What requests were routed by unless they named another profile: the default profile of the trace, or, where `events`
 * (RecordedRun.fleetEvents) make it another one or roll one out, each of them at its time. Throws an Error where the
 * trace lacks a profile, or where one asks for what this version does not have.
 */
export function inForceOf({ router }: TraceHeader, events: readonly FleetEvent[] = []): Candidate {
  const { profiles, defaultProfile } = router;
  const spec = checkedDefault(router);
  const names = [defaultProfile];
  let last = spec;
  let changes = 0;
  let now = router;
  const all = new Map(Object.entries(profiles).map(([name, one]) => [one, name]));
  for (const event of events) {
    if (event.kind === "rollout-restored" || (event.kind === "rollout-step" && event.step === "start")) changes++;
    if (event.kind !== "policy-changed" && event.kind !== "profile-changed") continue;
    now = routerAfter(now, event);
    for (const [name, one] of Object.entries(now.profiles)) all.set(one, name);
    const next = checkedDefault(now);
    if (isSame(next, last)) continue;
    last = next;
    changes++;
    if (!names.includes(now.defaultProfile)) names.push(now.defaultProfile);
  }
  if (changes === 0) return { name: defaultProfile, spec };
  for (const [one, name] of all) check(name, one);
  return { name: recordedName(names, changes), spec, asRecorded: { profiles, defaultProfile } };
}

const NAMES_LISTED_MAX = 3;

function recordedName(names: readonly string[], changes: number): string {
  const listed = names.slice(0, NAMES_LISTED_MAX).join(", ");
  const more = names.length > NAMES_LISTED_MAX ? ` and ${names.length - NAMES_LISTED_MAX} more` : "";
  return `as recorded (${listed}${more}; ${changes} ${changes === 1 ? "change" : "changes"})`;
}

function checkedDefault({ profiles, defaultProfile }: TraceRouter): ProfileSpec {
  const spec = profiles[defaultProfile];
  if (spec === undefined) throw new Error(`does not hold the profile that was in force, ${defaultProfile}`);
  return check(defaultProfile, spec);
}

function check(name: string, spec: ProfileSpec): ProfileSpec {
  const [problem] = checkProfile(spec);
  if (problem === undefined) return spec;
  throw new Error(`was routed by ${name}, which is none of this version: ${problem.path}: ${problem.message}`);
}

function isSame(a: ProfileSpec, b: ProfileSpec): boolean {
  return a === b || JSON.stringify(a) === JSON.stringify(b);
}
