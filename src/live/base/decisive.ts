import { MICROS_PER_MILLI } from "#core/base/units.ts";
import { ABSTAINED, type CandidateLoad, ColumnBreakdown, nextBest } from "#core/input/breakdown.ts";
import type { Routed, Decision } from "#core/input/decision.ts";

/** The prompt of a decision, in tokens as the gateway counted them. */
export interface CountedPrompt {
  readonly promptTokens: number;
  /** False where the count is an estimate. */
  readonly exact: boolean;
}

/**
 * Why a request went where it went, for a person and for a header: the decision's one word, then what spoke for the
 * endpoint against the next best one. Printable ASCII, below 256 characters. For example:
 *
 *     predicted-latency; 672 of 694 tokens cached there, next best 0; the next best adds 7.1 times the waiting; first
 *     token expected in 45 ms, at the next best in 320 ms
 *
 * Made for each answer, so by adding to one text, without lists.
 */
export function decisiveText(decision: Routed, prompt: CountedPrompt): string {
  return chosenFor(decision, prompt) + prefillText(decision);
}

/** Where the prompt is computed, where profiles divide requests. */
function prefillText({ prefill, colocated }: Routed): string {
  if (prefill !== undefined) return `; its prompt computed at ${prefill.endpoint} (${prefill.reason})`;
  return colocated === undefined ? "" : `; one endpoint does both (${colocated})`;
}

function chosenFor(decision: Routed, prompt: CountedPrompt): string {
  const { reason, breakdown } = decision;
  const chosen = indexOf(decision);
  if (chosen < 0) return reason;
  if (reason === "only") return `only; ${removals(decision)}`;
  const next = nextBest(breakdown.totals, chosen);
  const facts = next < 0 ? reason : `${reason}; ${comparison(decision, chosen, next, prompt)}`;
  if (reason !== "tie") return facts;
  return `${facts}; equal to ${tiedWith(breakdown.totals, chosen)} more, decided by the tie rule`;
}

function comparison(decision: Routed, chosen: number, next: number, prompt: CountedPrompt): string {
  const here = loadOf(decision, chosen);
  const there = loadOf(decision, next);
  let facts = cached(here, there, prompt);
  if (here.effectiveLoad !== there.effectiveLoad) {
    facts += `; ${requests(here.effectiveLoad)} there, next best ${rounded(there.effectiveLoad)}`;
  }
  if (here.prefillTokensQueued !== there.prefillTokensQueued) {
    facts += `; ${rounded(here.prefillTokensQueued)} prompt tokens queued there, next best ${rounded(there.prefillTokensQueued)}`;
  }
  const scores = scored(decision, chosen, next);
  return (scores === "" ? facts : `${facts}; ${scores}`) + expected(decision);
}

function cached(here: CandidateLoad, there: CandidateLoad, { promptTokens, exact }: CountedPrompt): string {
  const about = exact ? "" : "about ";
  if (here.hitTokens === 0 && there.hitTokens === 0) return `none of its ${about}${promptTokens} tokens cached`;
  return `${about}${rounded(here.hitTokens)} of ${promptTokens} tokens cached there, next best ${rounded(there.hitTokens)}`;
}

function expected({ forecast }: Routed): string {
  if (forecast === undefined) return "";
  const { ttftMicros, nextTtftMicros: next } = forecast;
  const here = `; first token expected in ${rounded(ttftMicros / MICROS_PER_MILLI)} ms`;
  return next === undefined ? here : `${here}, at the next best in ${rounded(next / MICROS_PER_MILLI)} ms`;
}

/** What the scorer that decided made of it; "" where it was none. */
function scored({ reason, breakdown }: Routed, chosen: number, next: number): string {
  const at = breakdown.scorers.findIndex(({ name }) => name === reason);
  if (at < 0) return "";
  const { length } = breakdown.totals;
  const here = breakdown.values[at * length + chosen]!;
  const there = breakdown.values[at * length + next]!;
  if (here === ABSTAINED || there === ABSTAINED) return "";
  // Its score is the best cost over the endpoint's own.
  if (COST_SCORERS.has(reason) && there > 0) {
    const times = here / there;
    if (times < NEARLY_EQUAL) return "the next best adds nearly as little waiting";
    return `the next best adds ${times < 10 ? times.toFixed(1) : times.toFixed(0)} times the waiting`;
  }
  return `score ${here.toPrecision(2)}, next best ${there.toPrecision(2)}`;
}

const NEARLY_EQUAL = 1.05;
const COST_SCORERS: ReadonlySet<string> = new Set(["added-latency", "predicted-latency"]);

/** What stands in the way of the others. */
function removals(decision: Routed): string {
  const counts = new Map<string, number>();
  for (const { removedBy } of decision.breakdown.candidates) {
    if (removedBy !== "") counts.set(removedBy, (counts.get(removedBy) ?? 0) + 1);
  }
  if (counts.size === 0) return "there is no other endpoint";
  return `the others were removed: ${[...counts].map(([by, count]) => `${count} by ${by}`).join(", ")}`;
}

function tiedWith(totals: Float64Array, chosen: number): number {
  let count = 0;
  for (let i = 0; i < totals.length; i++) if (i !== chosen && totals[i] === totals[chosen]) count++;
  return count;
}

function indexOf({ breakdown, endpoint }: Routed): number {
  if (breakdown instanceof ColumnBreakdown) return breakdown.endpoints.indexOf(endpoint);
  return breakdown.candidates.findIndex((row) => row.endpoint === endpoint);
}

function loadOf({ breakdown }: Routed, index: number): CandidateLoad {
  return breakdown instanceof ColumnBreakdown ? breakdown.loadOf(index) : breakdown.candidates[index]!;
}

function requests(load: number): string {
  return load === 1 ? "1 request" : `${rounded(load)} requests`;
}

function rounded(value: number): string {
  return String(Math.round(value));
}

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
