import type { Outcome } from "#core/endpoint/outcome.ts";
import type { Observed } from "./observed.ts";

/** Why the times of a request that ended otherwise than well are no evidence, in words that follow a number of them. */
export const NOT_WHOLE: Readonly<Record<Exclude<Outcome, "ok">, string>> = {
  failed: "broken off by their endpoint",
  aborted: "given up by their clients",
  timeout: "ended by a limit of the gateway",
  refused: "refused",
};

const RETRIED = "retried, so that their times hold more than one endpoint's work";

/** Why a request's times are no evidence of a model's error, in words that follow a number; undefined if they are. */
export function uncomparedReason({ ok, uncompared, attempts }: Observed): string | undefined {
  if (uncompared !== undefined) return uncompared;
  if (!ok) return "not answered whole";
  return attempts > 1 ? RETRIED : undefined;
}
