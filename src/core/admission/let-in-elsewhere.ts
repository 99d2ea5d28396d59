import type { RouteRequest } from "../request/request.ts";
import type { ServiceCounters } from "../tenant/service-counters.ts";
import type { Micros } from "../base/units.ts";
import type { AdmissionPolicy, UsedTokens } from "./admission.ts";
import type { ModelCap } from "./model-cap.ts";
import type { TakenOver } from "./windows-elsewhere.ts";

/** The end of a request that another router let in, once. */
export type LetInElsewhere = (at: Micros, used: UsedTokens) => void;

export interface AdmissionShared {
  readonly limits: ReadonlyMap<string, AdmissionPolicy>;
  readonly modelCap: ModelCap | undefined;
  readonly counters: () => ServiceCounters | undefined;
}

/**
 * Counts a request that another router sent to an endpoint with such labels, whatever the limits say: but in windows
 * that were taken over, as it is in them.
 */
export function letInElsewhere(
  { limits, modelCap, counters }: AdmissionShared,
  at: Micros,
  request: RouteRequest,
  labels: Readonly<Record<string, string>>,
  newTokens: number,
  taken?: TakenOver,
): LetInElsewhere {
  const model = modelCap?.permitFor(request, labels);
  if (model !== undefined) modelCap?.take(model);
  for (const [name, limit] of limits) {
    if (limit.windows === undefined || taken?.has(name, limit.windows.subjectOf(request)) !== true) {
      limit.admitted(request, at);
    }
  }
  counters()?.served(request.tenant, newTokens, 0);
  return (endedAt, used) => {
    for (const limit of limits.values()) limit.ended(request, endedAt, used);
    if (model !== undefined) modelCap?.release(model);
    counters()?.served(request.tenant, 0, used.outputTokens ?? 0);
  };
}
