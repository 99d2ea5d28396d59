import { mix32 } from "#core/base/random.ts";
import type { WorkloadRequest } from "../workload-request.ts";

/**
 * A request of one of several workloads that become one: its conversations have the number of their source before their
 * names, and its content is its source's own unless `sharedContent`. Source 0 keeps its ids.
 */
export function taggedRequest(
  request: WorkloadRequest,
  source: number,
  index: number,
  sharedContent: boolean,
): WorkloadRequest {
  const { session, parent, joins } = request;
  const own = (ids: Float64Array | undefined): Float64Array | undefined =>
    sharedContent || source === 0 ? ids : ids?.map((id) => apart(id, source));
  const name = (given: string): string => (given === "" ? "" : `${source}/${given}`);
  return {
    ...request,
    index,
    session: name(session),
    parent: parent === undefined ? undefined : { session: name(parent.session), turn: parent.turn },
    joins: joins.map(name),
    blockIds: own(request.blockIds),
    ...(request.answerIds !== undefined && { answerIds: own(request.answerIds) }),
  };
}

/** A bijection on 53-bit ids, another one for each source. */
function apart(id: number, source: number): number {
  const high = Math.floor(id / 0x1_0000_0000);
  const low = mix32((id | 0) ^ mix32(source));
  return ((high ^ mix32(low ^ source)) & 0x1f_ffff) * 0x1_0000_0000 + low;
}
