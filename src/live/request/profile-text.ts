import type { Decision } from "#core/decision.ts";

/**
 * Profile and policy version of a decision as the header x-gnomon-profile has them: `gnomon; version=3`. What a header
 * cannot hold of a name, and what would end it, is percent-encoded.
 */
export function profileText({ profile, policyVersion }: Pick<Decision, "profile" | "policyVersion">): string {
  return `${PLAIN.test(profile) ? profile : encodeURIComponent(profile)}; version=${policyVersion}`;
}

const PLAIN = /^[\w.:,+*/@-]+$/;
