import type { HangReason } from "#core/endpoint/hang-reason.ts";
import type { Input } from "#core/input.ts";
import type { Fields } from "./fields.ts";
import { number } from "./number.ts";

const HANG_REASONS: readonly HangReason[] = ["silent", "stalled"];

type CordonKind = "endpoint-cordoned" | "endpoint-uncordoned";
type VerdictKind = "endpoint-checked" | "endpoint-slept" | "endpoint-suspended" | "endpoint-resumed";
type Verdict<Kind = VerdictKind> = Extract<Input, { readonly kind: Kind }>;

/** What was found of an endpoint, behind its name. */
export function encodeVerdict(verdict: Verdict): string {
  switch (verdict.kind) {
    case "endpoint-checked":
      return `,"healthy":${verdict.healthy}`;
    case "endpoint-slept":
      return `,"asleep":${verdict.asleep}${verdict.emptied === true ? ',"emptied":true' : ""}`;
    case "endpoint-suspended":
      return `,"reason":"${verdict.reason}"`;
    case "endpoint-resumed":
      return `,"servedUntilWell":${number(verdict.servedUntilWell)}`;
  }
}

export function decodeVerdict(
  kind: VerdictKind | CordonKind,
  at: number,
  fields: Fields,
): Verdict<VerdictKind | CordonKind> {
  const endpoint = fields.string("endpoint");
  switch (kind) {
    case "endpoint-cordoned":
    case "endpoint-uncordoned":
      return { kind, at, endpoint };
    case "endpoint-checked":
      return { kind, at, endpoint, healthy: fields.boolean("healthy") };
    case "endpoint-slept": {
      const emptied = fields.boolean("emptied", false) && { emptied: true as const };
      return { kind, at, endpoint, asleep: fields.boolean("asleep"), ...emptied };
    }
    case "endpoint-suspended":
      return { kind, at, endpoint, reason: fields.oneOf("reason", HANG_REASONS) };
    case "endpoint-resumed":
      return { kind, at, endpoint, servedUntilWell: fields.integer("servedUntilWell", 0) };
  }
}
