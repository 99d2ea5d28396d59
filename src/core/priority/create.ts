import type { RouteRequest } from "../request/request.ts";
import { MICROS_PER_MILLI, type Micros } from "../base/units.ts";
import type { PriorityPolicy } from "./priority.ts";

/**
 * A priority policy as plain data. Scores are as in BLIS: a higher one is more urgent; vLLM's priority is its negative.
 * - constant: every request alike
 * - slo-based: by its class
 * - tenant-priority: by its tenant
 * - deadline-aware: the earlier the class's first-token deadline, the more urgent; counted in milliseconds of time
 */
export type PrioritySpec =
  | { readonly type: "constant"; readonly score: number }
  | { readonly type: "slo-based"; readonly scores: Scores; readonly defaultScore: number }
  | { readonly type: "tenant-priority"; readonly scores: Scores; readonly defaultScore: number }
  | { readonly type: "deadline-aware"; readonly targetMillis: Scores; readonly defaultTargetMillis: number };

type Scores = Readonly<Record<string, number>>;

export const PRIORITY_POLICIES = ["constant", "slo-based", "tenant-priority", "deadline-aware"] as const;

/** The policy that a spec describes. */
export function createPriority(spec: PrioritySpec): PriorityPolicy {
  switch (spec.type) {
    case "constant":
      return scored(spec.type, () => spec.score);
    case "slo-based":
      return scored(spec.type, ({ sloClass }) => named(spec.scores, sloClass, spec.defaultScore));
    case "tenant-priority":
      return scored(spec.type, ({ tenant }) => named(spec.scores, tenant, spec.defaultScore));
    case "deadline-aware":
      return {
        name: spec.type,
        priorityOf: ({ sloClass }: RouteRequest, at: Micros) =>
          Math.floor(at / MICROS_PER_MILLI) + Math.round(named(spec.targetMillis, sloClass, spec.defaultTargetMillis)),
      };
  }
}

function scored(name: string, scoreOf: (request: RouteRequest) => number): PriorityPolicy {
  return { name, priorityOf: (request) => 0 - Math.round(scoreOf(request)) };
}

function named(scores: Scores, name: string, otherwise: number): number {
  return Object.hasOwn(scores, name) ? scores[name]! : otherwise;
}
