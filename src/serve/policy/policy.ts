import { ConfigError } from "#config/config-error.ts";
import { patchBetween } from "#config/merge-patch.ts";
import { configOver, type PolicyDocument, fixedDifferences, policyDocument } from "#config/policy-document.ts";
import { pathText, problemLine } from "#config/problem.ts";
import { type ResolvedProfiles, resolveProfiles } from "#config/resolve-profiles.ts";
import type { Config } from "#config/schema.ts";
import { buildProfile } from "#core/profile/build-profile.ts";

/** What decides, and how much of it is let in: the part of a configuration that may change while the gateway runs. */
export interface Policy extends ResolvedProfiles {
  readonly config: Config;
  readonly document: PolicyDocument;
  /** The document, for telling two of them apart. */
  readonly text: string;
}

/**
 * The policy of a configuration that was read and whose profiles were checked. Throws ConfigError with all that is wrong:
 * keys that cannot change while `running` runs, plugins that cannot be made, too large a document.
 */
export function policyOf(asked: ResolvedProfiles & { readonly config: Config }, running: Config): Policy {
  const { config, profile, profiles } = asked;
  const lines = fixedDifferences(running, config).map((problem) => problemLine(problem));
  for (const { name, spec } of Object.values(profiles)) {
    try {
      buildProfile(name, spec);
    } catch (error) {
      lines.push(`${pathText(["profiles", name])}: ${error instanceof Error ? error.message : String(error)}`);
    }
  }
  const document = policyDocument(config, { profile, profiles });
  const text = JSON.stringify(document);
  const { documentBytesMax } = running.policy;
  if (Buffer.byteLength(text) > documentBytesMax) {
    const bytes = Buffer.byteLength(text);
    lines.push(`policy: expected at most ${documentBytesMax} bytes (policy.documentBytesMax), got ${bytes}`);
  }
  if (lines.length > 0) throw new ConfigError(lines);
  return { config, profile, profiles, document, text };
}

/** `inForce` with what differs between two policies of one source. Throws ConfigError. */
export function policyOver(
  inForce: Policy,
  before: Pick<Policy, "document" | "text">,
  asked: Policy,
  running: Config,
): Policy {
  if (before.text === inForce.text) return asked;
  const config = configOver(running, inForce.document, patchBetween(before.document, asked.document), "merge");
  return policyOf({ config, ...resolveProfiles(config, { environment: {}, readsFiles: false }) }, running);
}
