import * as z from "zod";
import type { ProfileSpec } from "#core/plugin/spec.ts";
import { signalsOf as readSignals } from "#core/profile/build-profile.ts";

/** From reading an engine's metrics page until the router knows it, unless a profile states otherwise. */
const DELAY_MILLIS = 5;
/** Age above which the ledger replaces a scrape, and in intervals where those are long. */
const STALE_AFTER_MILLIS = 3_000;
const STALE_AFTER_INTERVALS = 3;

/** The section `signals` of a profile: how often and how late the router that it is made for knows engines' gauges. */
export const SIGNALS_SCHEMA = z.strictObject({
  intervalMillis: z.number().min(0.1).max(1e7).describe("Time between two scrapes of an engine."),
  delayMillis: z.number().min(0).max(1e7).default(DELAY_MILLIS).describe("From a scrape until its gauges are known."),
  source: z.string().min(1).describe("Whose interval that is."),
});

export type ProfileSignals = Readonly<z.output<typeof SIGNALS_SCHEMA>>;

/** What a profile is made for that states nothing. */
export const OWN_SIGNALS: ProfileSignals = { intervalMillis: 1_000, delayMillis: DELAY_MILLIS, source: "gnomon's own" };

/** The signals of a profile, for the gateway, simulations and comparisons alike. */
export function signalsOfProfile({ signals }: { readonly signals?: ProfileSignals | undefined }): ProfileSignals {
  return signals ?? OWN_SIGNALS;
}

/** Age above which the router's ledger replaces gauges that are read so often. */
export function staleAfterMillis(intervalMillis: number): number {
  return Math.max(STALE_AFTER_MILLIS, STALE_AFTER_INTERVALS * intervalMillis);
}

interface Signalled {
  readonly name: string;
  readonly spec: ProfileSpec;
  readonly signals?: ProfileSignals | undefined;
}

/**
 * How often a gateway reads gauges where its configuration states nothing: as often as the most demanding of its
 * profiles that decide by them, and never less often than gnomon's own, since the same page shows whether an engine
 * lives.
 */
export function scrapeMillisFor(profiles: readonly Signalled[]): number {
  return profiles
    .filter(readsGauges)
    .reduce((least, one) => Math.min(least, signalsOfProfile(one).intervalMillis), OWN_SIGNALS.intervalMillis);
}

/** Of profiles that decide by gauges, those that are made for gauges read more often than that, a line each. */
export function madeForMore(profiles: readonly Signalled[], intervalMillis: number): string[] {
  return profiles
    .filter((one) => readsGauges(one) && signalsOfProfile(one).intervalMillis < intervalMillis)
    .map((one) => `${one.name} is made for ${signalsText(signalsOfProfile(one))}`);
}

function readsGauges({ spec }: Signalled): boolean {
  return [...readSignals(spec)].some((signal) => signal.startsWith("scrape:"));
}

/** As people read it: "gauges every 50 ms, 5 ms late (llm-d-router, --refresh-metrics-interval)". */
export function signalsText({ intervalMillis, delayMillis, source }: ProfileSignals): string {
  return `gauges every ${intervalMillis} ms, ${delayMillis} ms late (${source})`;
}
