import { EMPTY_BREAKDOWN } from "#core/breakdown.ts";
import type { Placed, Rejected, Routed } from "#core/decision.ts";
import type { PrefixSource } from "#core/endpoint/knowledge.ts";
import type { MessageReader } from "./message-reader.ts";
import type { MessageWriter } from "./message-writer.ts";

/** A decision as a worker has it: without its breakdown, and with the line that was made of that. */
export interface CarriedRouted extends Routed {
  readonly why: string;
}

const ROUTED = 1;
const PRECISE = 2;
const USED_LEDGER = 4;

export function writeDecision(to: MessageWriter, decision: Placed, why: string): void {
  if (decision.kind === "rejected") writeRejected(to, decision);
  else writeRouted(to, decision, why);
}

function writeRouted(to: MessageWriter, decision: Routed, why: string): void {
  const { kind: _, requestId: __, breakdown: ___, at, sequence, attempt, profile, policyVersion, ...own } = decision;
  const { endpoint, reason, hitTokens, prefixSource, usedLedger, ...rare } = own;
  to.byte(ROUTED | (prefixSource === "precise" ? PRECISE : 0) | (usedLedger ? USED_LEDGER : 0));
  writeHead(to, { at, sequence, attempt, profile, policyVersion });
  to.name(endpoint);
  to.name(reason);
  to.number(hitTokens);
  to.text(why);
  to.text(rareText(rare));
}

function writeRejected(to: MessageWriter, decision: Rejected): void {
  const { kind: _, requestId: __, breakdown: ___, at, sequence, attempt, profile, policyVersion, ...rare } = decision;
  to.byte(0);
  writeHead(to, { at, sequence, attempt, profile, policyVersion });
  to.text(rareText(rare));
}

export function readDecision(from: MessageReader, requestId: string): CarriedRouted | Rejected {
  const flags = from.byte();
  const head = readHead(from, requestId);
  // What is rare was written from a decision of this program.
  if ((flags & ROUTED) === 0) return { kind: "rejected", ...head, ...(JSON.parse(from.text()) as RareOfRejected) };
  const [endpoint, reason, hitTokens, why, rare] = [from.name(), from.name(), from.number(), from.text(), from.text()];
  const prefixSource: PrefixSource = (flags & PRECISE) === 0 ? "approximate" : "precise";
  const usedLedger = (flags & USED_LEDGER) !== 0;
  const routed = { kind: "routed", ...head, endpoint, reason, hitTokens, prefixSource, usedLedger, why } as const;
  return rare === "" ? routed : { ...routed, ...(JSON.parse(rare) as Partial<CarriedRouted>) };
}

type Head = Pick<Placed, "at" | "sequence" | "attempt" | "profile" | "policyVersion">;
type RareOfRejected = Omit<Rejected, "kind" | "requestId" | "breakdown" | keyof Head>;

function writeHead(to: MessageWriter, { at, sequence, attempt, profile, policyVersion }: Head): void {
  to.number(at);
  to.number(sequence);
  to.number(attempt);
  to.name(profile);
  to.number(policyVersion);
}

function readHead(from: MessageReader, requestId: string) {
  const [at, sequence, attempt] = [from.number(), from.number(), from.number()];
  const [profile, policyVersion] = [from.name(), from.number()];
  return { at, sequence, requestId, attempt, profile, policyVersion, breakdown: EMPTY_BREAKDOWN };
}

/** "" where there is nothing; breakdowns, and what other arms would have done, stay where the decision was made. */
function rareText(rare: object): string {
  for (const _ in rare) return JSON.stringify(rare, withoutBulk);
  return "";
}

function withoutBulk(key: string, value: unknown): unknown {
  if (key === "breakdown") return EMPTY_BREAKDOWN_TEXT;
  return key === "alternatives" ? undefined : value;
}

/** As JSON keeps it. */
const EMPTY_BREAKDOWN_TEXT = { ...EMPTY_BREAKDOWN, values: [], totals: [] };
