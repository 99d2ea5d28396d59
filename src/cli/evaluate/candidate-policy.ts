import * as z from "zod";
import { ConfigError } from "#config/config-error.ts";
import { checkShape, problemLine, unknownWord } from "#config/problem.ts";
import { profileOfPolicy } from "#config/policy-config.ts";
import { loadProfile, type NamedProfile } from "#config/profile-file.ts";
import type { ProfileSignals } from "#config/profile-signals.ts";
import { WEIGHT_SCORERS } from "#config/routing-policy.ts";
import { POLICY_SECTIONS, policiesFrom } from "#config/simulation-policies.ts";
import { CHANGES, type CandidateChange, candidateChange } from "./candidate-change.ts";
import { CATALOG } from "#core/profile/catalog.ts";
import { checkProfile, completeProfile, type PartialProfile } from "#core/profile/check.ts";
import type { ParameterValue, PluginSpec, ProfileSpec } from "#core/plugin/spec.ts";
import type { TemplateSections } from "./policy-templates.ts";

/** A policy that a framework asks about, by its name for it. */
export interface AskedPolicy {
  readonly id: string;
  /** Why it cannot be evaluated, in place of a policy. */
  readonly spec: ProfileSpec | { readonly problems: readonly string[] };
  /** What its profile is made for; undefined where it states nothing. */
  readonly signals?: ProfileSignals | undefined;
  /** What it changes beside its profile; undefined for nothing. */
  readonly change?: CandidateChange | undefined;
}

/** What candidates change that have neither a profile nor weights of a policies file. */
export const BASE_PROFILE = "gnomon-weighted";
/** A policies file's weighted scoring before it has a weight. */
const NO_WEIGHTS: ProfileSpec = { filters: [], scorers: [], picker: { plugin: "max-score", parameters: {} } };

/** Candidates of one batch at most. */
const BATCH_MAX = 1_000;
const VALUE = z.union([z.number(), z.string(), z.boolean()]);
const POLICY = z.strictObject({
  policy_id: z.string().min(1).max(200).optional(),
  profile: z.union([z.string().min(1), z.record(z.string(), z.unknown())]).optional(),
  policies: z.record(z.string(), z.unknown()).optional(),
  parameters: z.record(z.string(), VALUE).optional(),
});
const BATCH = z.strictObject({ candidates: z.array(z.unknown()).min(1).max(BATCH_MAX) });

/** Names of weights that frameworks' examples use, and the scorers that they are. */
const WEIGHT_NAMES: Readonly<Record<string, string>> = {
  ...Object.fromEntries(Object.entries(WEIGHT_SCORERS).map(([key, name]) => [`routing.${key}`, name])),
  "routing.prefix_affinity_weight": "prefix-affinity",
};

/** What candidates change that state nothing else: a profile by name, and sections of a policies file. */
export interface CandidateBase {
  /** Where it is left out: of candidates with weights of a policies file that template alone, of others BASE_PROFILE. */
  readonly profile?: string | undefined;
  readonly policies?: TemplateSections | undefined;
}

/**
 * Policies of one JSON document: `{"candidates": [...]}`, or one candidate alone. A candidate is
 * `{policy_id, profile, policies, parameters}`: a profile by name, path or content, sections of a policies file, and dotted
 * parameters that change both; or the dotted parameters, or the sections, alone. A candidate that makes no policy has its
 * problems; throws ConfigError where the document is none.
 */
export function askedPolicies(document: unknown, base: CandidateBase): AskedPolicy[] {
  const isBatch = typeof document === "object" && document !== null && "candidates" in document;
  if (!isBatch) return [askedPolicy(document, base, 0)];
  const checked = checkShape(BATCH, document);
  if (!checked.ok) throw new ConfigError(checked.problems.map((problem) => problemLine(problem)));
  return checked.value.candidates.map((one, i) => askedPolicy(one, base, i));
}

function askedPolicy(value: unknown, base: CandidateBase, number: number): AskedPolicy {
  const checked = checkShape(POLICY, wrapped(value));
  const fallback = `candidate_${number + 1}`;
  if (!checked.ok) return { id: fallback, spec: { problems: checked.problems.map((problem) => problemLine(problem)) } };
  const { policy_id: id = fallback, profile, policies: given, parameters = {} } = checked.value;
  try {
    const { routing, ...policies } = { ...base.policies, ...given };
    const isTemplate = Object.keys(parameters).some((path) => Object.hasOwn(WEIGHT_NAMES, path));
    const section = given?.["routing"] ?? (profile === undefined ? routing : undefined);
    const from = fromProfile(profile ?? base.profile ?? (isTemplate ? NO_WEIGHTS : BASE_PROFILE), section, profile);
    const own = Object.entries(parameters).filter(([path]) => !CHANGES.has(path.slice(0, path.indexOf("."))));
    for (const name of Object.keys(policies))
      if (!POLICY_SECTIONS.has(name))
        throw new ConfigError([`policies: ${unknownWord("section", name, [...POLICY_SECTIONS])}`]);
    const change = candidateChange(parameters, policies);
    const spec = withParameters(from.spec, Object.fromEntries(own));
    return { id, spec, signals: from.signals, ...(change && { change }) };
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    return { id, spec: { problems: error.lines } };
  }
}

/** Dotted parameters alone, and sections alone, as the candidate that has them. */
function wrapped(value: unknown): unknown {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return value;
  const keys = Object.keys(value);
  if (keys.length === 0) return value;
  if (keys.every((key) => key.includes("."))) return { parameters: value };
  return keys.every((key) => POLICY_SECTIONS.has(key)) ? { policies: value } : value;
}

/** The profile that a candidate names, has, or gets by a section `routing`, beside which it may have none itself. */
function fromProfile(
  profile: string | Readonly<Record<string, unknown>> | ProfileSpec,
  routing: unknown,
  own: unknown,
): Pick<NamedProfile, "spec" | "signals"> {
  if (own !== undefined && routing !== undefined)
    throw new ConfigError(["profile: expected to be alone, got it together with policies.routing"]);
  if (routing !== undefined) {
    const { routing: policy } = policiesFrom({ routing }, (problem) => problemLine(problem));
    return profileOfPolicy(policy!, { policy: "routing", scorers: "routing" });
  }
  if (profile === NO_WEIGHTS) return { ...loadProfile("weighted"), spec: NO_WEIGHTS };
  return typeof profile === "string" ? loadProfile(profile) : { spec: inlineSpec({ ...profile }) };
}

function inlineSpec(profile: Readonly<Record<string, unknown>>): ProfileSpec {
  const { name: _name, summary: _summary, source: _source, signals: _signals, ...spec } = profile;
  const problems = checkProfile(spec);
  if (problems.length > 0) throw new ConfigError(problems.map(({ path, message }) => `profile.${path}: ${message}`));
  return completeProfile(spec as unknown as PartialProfile);
}

/**
 * `scorers.NAME.weight`, `scorers.NAME.PARAMETER`, `filters.NAME.PARAMETER`, `picker.PARAMETER`, `picker.plugin`. A plugin
 * that is not there is added; a weight of 0 takes its scorer out. Throws ConfigError.
 */
function withParameters(from: ProfileSpec, parameters: Readonly<Record<string, ParameterValue>>): ProfileSpec {
  let spec = from;
  const problems: string[] = [];
  for (const [path, value] of Object.entries(parameters)) {
    const scorer = Object.hasOwn(WEIGHT_NAMES, path) ? WEIGHT_NAMES[path] : undefined;
    const [kind = "", name = "", key = ""] = scorer === undefined ? parts(path) : ["scorers", scorer, "weight"];
    if (kind === "picker" && name !== "") spec = { ...spec, picker: picked(spec.picker, name, value) };
    else if (kind === "scorers" && key === "weight") spec = { ...spec, scorers: weighed(spec, name, value) };
    else if ((kind === "scorers" || kind === "filters") && key !== "") spec = changed(spec, kind, name, key, value);
    else problems.push(`${path}: expected ${ACCEPTED}, got ${JSON.stringify(path)}`);
  }
  for (const { plugin } of spec.scorers)
    if (!Object.hasOwn(CATALOG.scorers, plugin))
      problems.push(unknownWord("scorer", plugin, Object.keys(CATALOG.scorers)));
  if (problems.length === 0) problems.push(...checkProfile(spec).map(({ path, message }) => `${path}: ${message}`));
  if (problems.length > 0) throw new ConfigError(problems);
  return spec;
}

const ACCEPTED = `scorers.NAME.weight, scorers.NAME.PARAMETER, filters.NAME.PARAMETER, picker.PARAMETER, admission.KEY, priority.KEY, scheduler.KEY, autoscale.KEY or one of ${Object.keys(WEIGHT_NAMES).join(", ")}`;

function parts(path: string): string[] {
  const [kind = "", ...rest] = path.split(".");
  return kind === "picker" ? [kind, rest.join(".")] : [kind, rest[0] ?? "", rest.slice(1).join(".")];
}

function picked({ plugin, parameters }: PluginSpec, name: string, value: ParameterValue): PluginSpec {
  return name === "plugin"
    ? { plugin: String(value), parameters: {} }
    : { plugin, parameters: { ...parameters, [name]: value } };
}

function weighed({ scorers }: ProfileSpec, name: string, value: ParameterValue): ProfileSpec["scorers"] {
  const others = scorers.filter(({ plugin }) => plugin !== name);
  if (value === 0) return others;
  const own = scorers.find(({ plugin }) => plugin === name) ?? { plugin: name, parameters: {} };
  return scorers.some(({ plugin }) => plugin === name)
    ? scorers.map((one) => (one.plugin === name ? { ...one, weight: value as number } : one))
    : [...scorers, { ...own, weight: value as number }];
}

function changed(
  spec: ProfileSpec,
  kind: "scorers" | "filters",
  name: string,
  key: string,
  value: ParameterValue,
): ProfileSpec {
  const set = <T extends PluginSpec>(one: T): T =>
    one.plugin === name ? { ...one, parameters: { ...one.parameters, [key]: value } } : one;
  if (kind === "scorers") {
    if (!spec.scorers.some(({ plugin }) => plugin === name))
      throw new ConfigError([`scorers.${name}.${key}: expected the scorer to be there, which its weight adds`]);
    return { ...spec, scorers: spec.scorers.map(set) };
  }
  const filters = spec.filters.some(({ plugin }) => plugin === name)
    ? spec.filters
    : [...spec.filters, { plugin: name, parameters: {} }];
  return { ...spec, filters: filters.map(set) };
}
