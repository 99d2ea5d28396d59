import type { Decision } from "#core/input/decision.ts";

/**
 * Profile and policy version of a decision as the header x-gnomon-profile has them: `gnomon; version=3`, and where the
 * request is part of a rollout its place there: `lmetric; version=3; rollout=try; arm=other; window=7`. What a header
 * cannot hold of a name, and what would end it, is percent-encoded. "" where nothing was decided.
 */
export function profileText(decision: Pick<Decision, "profile" | "policyVersion" | "rollout"> | undefined): string {
  if (decision === undefined) return "";
  const { profile, policyVersion, rollout } = decision;
  if (profile !== last.profile || policyVersion !== last.policyVersion) {
    last = { profile, policyVersion, text: `${encoded(profile)}; version=${policyVersion}` };
  }
  const { text } = last;
  if (rollout === undefined) return text;
  return `${text}; rollout=${encoded(rollout.name)}; arm=${encoded(rollout.arm)}; window=${rollout.window}`;
}

/** The text made last: nearly all requests have the same. */
let last = { profile: "", policyVersion: -1, text: "" };

function encoded(name: string): string {
  return PLAIN.test(name) ? name : encodeURIComponent(name);
}

const PLAIN = /^[\w.:,+*/@-]+$/;
