import type { WorkloadRequest } from "#trace/workload-request.ts";

/** Ids below are of one session; from here on they stand for prompts that sessions have in common. */
const COMMON_FROM = 2 ** 52;
const COPY_STRIDE = 2 ** 40;
/** Block ids stay below it. */
const ID_END = 2 ** 53;

/**
 * A workload so many times over, one after the other: sessions again, with text of their own but for the prompts that all
 * have in common: the ids from 2^52 on, or those that `isCommon` accepts. `gapMicros` lies between the last start of one time
 * and the first of the next.
 */
export function copiesOf(
  requests: readonly WorkloadRequest[],
  times: number,
  gapMicros: number,
  isCommon: (id: number) => boolean = (id) => id >= COMMON_FROM,
): WorkloadRequest[] {
  const lastStart = requests.reduce(
    (last, one) => (one.thinkMicros === undefined ? Math.max(last, one.arrivalMicros) : last),
    0,
  );
  const apart = lastStart + gapMicros;
  return Array.from({ length: times }, (_, copy) =>
    requests.map((request) => copied(request, copy, copy * requests.length, copy * apart, isCommon)),
  ).flat();
}

function copied(
  request: WorkloadRequest,
  copy: number,
  indexBy: number,
  laterBy: number,
  isCommon: (id: number) => boolean,
): WorkloadRequest {
  if (copy === 0) return request;
  const named = (session: string) => `${session}~${copy}`;
  return {
    ...request,
    index: request.index + indexBy,
    arrivalMicros: Math.round(request.arrivalMicros + laterBy),
    session: named(request.session),
    parent: request.parent === undefined ? undefined : { ...request.parent, session: named(request.parent.session) },
    joins: request.joins.map(named),
    blockIds: request.blockIds?.map((id) => (isCommon(id) ? id : (id + copy * COPY_STRIDE) % ID_END)),
  };
}
