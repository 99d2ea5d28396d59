import { mix32 } from "#core/random.ts";
import type { WorkloadRequest } from "../workload-request.ts";

export interface MergeOptions {
  /** Whether equal block ids of different sources are equal content. If not they are kept apart. */
  readonly sharedContent: boolean;
}

interface Source {
  readonly number: number;
  readonly requests: AsyncIterator<WorkloadRequest>;
  next: WorkloadRequest | undefined;
  /** Latest arrival so far: a follow-up turn without a time of its own is where the turn before was. */
  atMicros: number;
}

/**
 * Workloads on top of one another, each from its start, in order of arrival. Sessions get the number of their source as
 * a prefix, so that equal names stay two conversations.
 */
export async function* mergeWorkloads(
  workloads: readonly AsyncIterable<WorkloadRequest>[],
  options: MergeOptions,
): AsyncGenerator<WorkloadRequest> {
  const sources: Source[] = [];
  for (const [number, workload] of workloads.entries()) {
    const source = { number, requests: workload[Symbol.asyncIterator](), next: undefined, atMicros: 0 };
    await advance(source);
    sources.push(source);
  }
  for (let index = 0; ; index++) {
    let first: Source | undefined;
    for (const source of sources)
      if (source.next !== undefined && (first === undefined || source.atMicros < first.atMicros)) first = source;
    if (first?.next === undefined) return;
    yield tagged(first.next, first.number, index, options.sharedContent);
    await advance(first);
  }
}

async function advance(source: Source): Promise<void> {
  const step = await source.requests.next();
  source.next = step.done === true ? undefined : step.value;
  if (source.next !== undefined) source.atMicros = Math.max(source.atMicros, source.next.arrivalMicros);
}

function tagged(request: WorkloadRequest, source: number, index: number, sharedContent: boolean): WorkloadRequest {
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
