import { ConfigError } from "#config/config-error.ts";
import { configOver, type PolicyDocument } from "#config/policy-document.ts";
import { resolveProfiles } from "#config/resolve-profiles.ts";
import type { Config } from "#config/schema.ts";
import { FIRST_POLICY_VERSION } from "#core/plugin/spec.ts";
import { integer, listOf, NOTHING_BESIDE, text, unchecked } from "#trace/codec/field-type.ts";
import { record } from "#trace/codec/record-type.ts";
import { type Policy, policyOf, policyOver } from "./policy.ts";
import type { PolicyPast } from "./policy-keeper.ts";

const VERSION = 1;

interface SavedVersion {
  readonly version: number;
  readonly at: string;
  readonly source: string;
  readonly by: string;
  readonly note: string;
  readonly document: object;
}

interface SavedPolicies {
  readonly version: number;
  readonly forgotten: number;
  readonly configured: string;
  readonly versions: readonly SavedVersion[];
}

const saved = record<SavedPolicies>({
  version: integer(1),
  forgotten: integer(0),
  configured: text,
  versions: listOf(
    record<SavedVersion>({
      version: integer(FIRST_POLICY_VERSION),
      at: text,
      source: text,
      by: text,
      note: text,
      document: unchecked("an object"),
    }),
  ),
});

/** What a policy keeper remembers, as it is kept across restarts. */
export function policiesText({
  versions,
  forgotten,
  configured,
}: PolicyPast & { readonly configured: Policy }): string {
  const kept = versions.map(({ policy, ...head }) => ({ ...head, document: policy.document }));
  return JSON.stringify({ version: VERSION, forgotten, configured: configured.text, versions: kept });
}

/**
 * The policies before a restart, that in force last. What of the configuration has changed since they were kept is in
 * force under the next number; all else that was changed meanwhile stays. A remembered policy that this
 * version or configuration cannot have is left out; where that in force is one, the configuration is in force. Throws
 * an Error for what is no such text.
 */
export function pastPolicies(value: unknown, start: Policy, running: Config, now: string): PolicyPast | undefined {
  if (value === undefined) return undefined;
  const { version, versions: heads, configured, forgotten } = saved.read(value, undefined, "", NOTHING_BESIDE);
  if (version !== VERSION) throw new Error(`version: expected ${VERSION}, got ${version}`);
  const last = heads.at(-1);
  if (last === undefined) return undefined;
  const versions = heads.flatMap(({ document, ...head }) => {
    const policy = policyFrom(document, start, running);
    return policy === undefined ? [] : [{ ...head, policy }];
  });
  const lastVersion = last.version;
  const inForce = versions.at(-1)?.version === lastVersion ? versions.at(-1)?.policy : undefined;
  const policy = inForce && changedSince(inForce, configured, start, running);
  const next = { version: lastVersion + 1, at: now, source: "start", by: "", note: "the configuration had changed" };
  return {
    versions:
      policy !== undefined && policy.text === inForce?.text
        ? versions
        : [...versions, { ...next, policy: policy ?? start }],
    forgotten,
  };
}

/** `inForce` with what the configuration changed since it was kept; undefined where that gives no policy. */
function changedSince(inForce: Policy, before: string, start: Policy, running: Config): Policy | undefined {
  if (before === start.text) return inForce;
  try {
    return policyOver(inForce, { text: before, document: JSON.parse(before) as PolicyDocument }, start, running);
  } catch (error) {
    if (error instanceof ConfigError || error instanceof SyntaxError) return undefined;
    throw error;
  }
}

/** A policy in force as replicas share it, with the configuration that it was made over. */
export type SharedPolicy = SavedVersion & { readonly configured: string };

const shared = record<SharedPolicy>({
  version: integer(FIRST_POLICY_VERSION),
  at: text,
  source: text,
  by: text,
  note: text,
  document: unchecked("an object"),
  configured: text,
});

export function sharedPolicyText(policy: SharedPolicy): string {
  return JSON.stringify(policy);
}

/** Reads what `sharedPolicyText` wrote; throws an Error that names what is wrong. */
export function sharedPolicy(json: string): SharedPolicy {
  return shared.read(JSON.parse(json), undefined, "", NOTHING_BESIDE);
}

/** The policy of a document that was kept or shared. Throws ConfigError. */
export function documentPolicy(document: unknown, start: Policy, running: Config): Policy {
  const config = configOver(running, start.document, document, "replace");
  return policyOf({ config, ...resolveProfiles(config, { environment: {}, readsFiles: false }) }, running);
}

function policyFrom(document: unknown, start: Policy, running: Config): Policy | undefined {
  try {
    return documentPolicy(document, start, running);
  } catch (error) {
    if (error instanceof ConfigError) return undefined;
    throw error;
  }
}
