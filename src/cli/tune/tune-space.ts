import { choosersOf } from "#core/profile/profile-stages.ts";
import { exportAibrix } from "#config/export-aibrix.ts";
import { exportLlmD } from "#config/export-llm-d.ts";
import { exportSmg, SMG_KINDS, type SmgKind } from "#config/export-smg.ts";
import { LLM_D_PLUGINS } from "#config/llm-d-plugins.ts";
import { STRATEGIES } from "#config/peer-aibrix.ts";
import { profileNames } from "#config/profile-file.ts";
import { namedCandidate } from "../flag/profile-gauges.ts";
import type { ProfileSpec } from "#core/plugin/spec.ts";
import type { Candidate } from "#shadow/candidate/candidate.ts";
import { COMMON_SCORERS, type PolicySpace } from "#shadow/tune/policy-space.ts";
import type { ROUTERS } from "./tune-flags.ts";

type Router = (typeof ROUTERS)[number];

/** Profiles that nobody would run: one sends everything to the busiest endpoint. */
const NOT_MEANT: ReadonlySet<string> = new Set(["always-busiest"]);
/** llm-d's scorers that need what not every fleet reports. */
const LLM_D_LEFT: ReadonlySet<string> = new Set(["latency-headroom", "lora-affinity"]);

/**
 * What may be put together for a router, and the policies to begin with: those named, or those that it can express; each
 * with the signals that it is made for where `ownSignals`.
 */
export function spaceFor(
  router: Router,
  named: readonly string[],
  ownSignals: boolean,
): { readonly space: PolicySpace; readonly bases: readonly Candidate[] } {
  const names = named.length > 0 ? named : profileNames().filter((name) => !NOT_MEANT.has(name));
  const all = names.map((name): Candidate => {
    const { gauges, ...one } = namedCandidate(name);
    return ownSignals ? { ...one, gauges } : one;
  });
  const accepts = ACCEPTS[router];
  const bases = all
    .filter(({ spec }) => named.length > 0 || choosersOf(spec).length === 1)
    .map((one) => ({ ...one, spec: accepts(one.spec) ? one.spec : (atRandom(one.spec) ?? one.spec) }))
    .filter(({ spec }) => accepts(spec));
  return { space: { scorers: SCORERS[router], accepts }, bases };
}

const ACCEPTS: Readonly<Record<Router, (spec: ProfileSpec) => boolean>> = {
  gnomon: () => true,
  "llm-d": (spec) => exportLlmD(spec).ok,
  aibrix: (spec) => exportAibrix(spec).ok,
  ...forSmgKinds((router) => (spec: ProfileSpec) => exportSmg(spec, router).ok),
};

const SCORERS: Readonly<Record<Router, readonly string[]>> = {
  gnomon: COMMON_SCORERS,
  "llm-d": Object.values(LLM_D_PLUGINS)
    .filter(({ kind, plugin }) => kind === "scorer" && !LLM_D_LEFT.has(plugin))
    .map(({ plugin }) => plugin),
  aibrix: Object.values(STRATEGIES).flatMap(({ scorer }) => (scorer === undefined ? [] : [scorer.plugin])),
  // Their policies are of fixed parts.
  ...forSmgKinds(() => []),
};

function forSmgKinds<T>(of: (router: SmgKind) => T): Record<SmgKind, T> {
  return Object.fromEntries(SMG_KINDS.map((router) => [router, of(router)])) as Record<SmgKind, T>;
}

/** The same policy with ties broken at random, as other routers do. */
function atRandom({ picker, ...rest }: ProfileSpec): ProfileSpec | undefined {
  if (picker.plugin !== "max-score") return undefined;
  return { ...rest, picker: { plugin: "max-score", parameters: { tieBreak: "random" } } };
}
