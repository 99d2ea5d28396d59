import type { Subject } from "./subject.ts";

/** What a subject has taken of a limit, as the limit counts it now. */
export interface LimitUse {
  /** As subjectOf names it. */
  readonly subject: string;
  readonly of: "requests" | "prompt-tokens" | "output-tokens";
  /** May be above the most: other routers let in some, and what is in flight took its ceiling. */
  readonly used: number;
  readonly max: number;
}

/** The tenant whose requests are counted under that name; undefined where those of several are. */
export function tenantOfSubject(per: Subject, subject: string): string | undefined {
  if (per === "all" || per === "model") return undefined;
  const end = subject.indexOf("\n");
  return end < 0 ? subject : subject.slice(0, end);
}
