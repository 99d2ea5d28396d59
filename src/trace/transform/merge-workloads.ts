import type { WorkloadRequest } from "../workload-request.ts";
import { taggedRequest } from "./tagged-request.ts";

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
    yield taggedRequest(first.next, first.number, index, options.sharedContent);
    await advance(first);
  }
}

async function advance(source: Source): Promise<void> {
  const step = await source.requests.next();
  source.next = step.done === true ? undefined : step.value;
  if (source.next !== undefined) source.atMicros = Math.max(source.atMicros, source.next.arrivalMicros);
}
