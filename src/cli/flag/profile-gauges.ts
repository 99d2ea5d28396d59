import { type NamedProfile, loadProfile } from "#config/profile-file.ts";
import { type ProfileSignals, signalsOfProfile, signalsText, staleAfterMillis } from "#config/profile-signals.ts";
import { MICROS_PER_MILLI } from "#core/base/units.ts";
import type { Candidate, Gauges } from "#shadow/candidate/candidate.ts";
import { scrapedEvery } from "#sim/signal/scraped-every.ts";

/** Signals as a simulation has them. */
export function profileGauges({ intervalMillis, delayMillis }: ProfileSignals): Gauges {
  return {
    signals: scrapedEvery(Math.round(intervalMillis * MICROS_PER_MILLI), Math.round(delayMillis * MICROS_PER_MILLI)),
    staleAfterMicros: Math.round(staleAfterMillis(intervalMillis) * MICROS_PER_MILLI),
  };
}

/** A profile as a candidate, with the signals that it is made for. */
export function profileCandidate(profile: NamedProfile): Candidate {
  return { name: profile.name, spec: profile.spec, gauges: profileGauges(signalsOfProfile(profile)) };
}

/** The same of a profile by name or path; throws ConfigError. */
export function namedCandidate(nameOrPath: string): Candidate {
  return profileCandidate(loadProfile(nameOrPath));
}

/** Signals with the profiles that are simulated under them, a line each: "llm-d: gauges every 50 ms, ...". */
export function signalsNotes(used: readonly { readonly name: string; readonly signals: ProfileSignals }[]): string[] {
  const names = new Map<string, string[]>();
  for (const { name, signals } of used) {
    const text = signalsText(signals);
    names.set(text, [...(names.get(text) ?? []), name]);
  }
  return [...names].map(([text, all]) => `${[...new Set(all)].join(", ")}: ${text}`);
}
