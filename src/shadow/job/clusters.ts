import type { WorkloadRequest } from "#trace/workload-request.ts";
import type { WorkloadRequests } from "../recorded/packed-workload.ts";

/** Requests that belong together, so that nothing is learnt on one of them and judged on another. */
export interface Clusters {
  /** Cluster of each row; numbered by their first arrival. */
  readonly ofRow: Int32Array;
  /** First arrival of each, on the workload's clock. */
  readonly startMicros: Float64Array;
  /** Place of each row in its cluster, from 0. */
  readonly turn: Int32Array;
}

/** A block that more than so many different blocks follow is a system prompt's, and no conversation's. */
const FOLLOWERS_MAX = 4;

/**
 * Conversations: by name with those that they spawned, and without names by prompts of which one begins with all whole
 * blocks of the other. What is neither stands alone.
 */
export function clustersOf(workload: WorkloadRequests): Clusters {
  const union = new Union(workload.length);
  const bySession = new Map<string, number>();
  const common = commonBlocks(workload);
  const byLastBlock = new Map<number, number>();
  const meet = (name: string, row: number) => {
    const first = bySession.get(name);
    if (first === undefined) bySession.set(name, row);
    else union.join(first, row);
  };
  for (const { index, session, parent, joins, blockIds } of workload) {
    if (session !== "") {
      meet(session, index);
      if (parent !== undefined) meet(parent.session, index);
      for (const name of joins) meet(name, index);
    } else if (blockIds !== undefined) continuing(blockIds, index, common, byLastBlock, union);
  }
  return numbered(workload, union);
}

/** A prompt that begins with an earlier one's whole blocks goes on with its conversation. */
function continuing(
  blockIds: ArrayLike<number>,
  row: number,
  common: ReadonlySet<number>,
  byLastBlock: Map<number, number>,
  union: Union,
): void {
  for (let i = blockIds.length - 1; i >= 0; i--) {
    const before = byLastBlock.get(blockIds[i]!);
    if (before === undefined || common.has(blockIds[i]!)) continue;
    union.join(before, row);
    break;
  }
  // The last block is seldom full, and then another one in the next turn.
  const last = blockIds[blockIds.length - 2] ?? blockIds[blockIds.length - 1];
  if (last !== undefined && !common.has(last)) byLastBlock.set(last, row);
}

function commonBlocks(workload: WorkloadRequests): ReadonlySet<number> {
  const followers = new Map<number, Set<number>>();
  const common = new Set<number>();
  for (const { session, blockIds } of workload) {
    if (session !== "" || blockIds === undefined) continue;
    for (let i = 0; i + 1 < blockIds.length; i++) {
      const id = blockIds[i]!;
      if (common.has(id)) continue;
      const seen = followers.get(id) ?? new Set<number>();
      followers.set(id, seen.add(blockIds[i + 1]!));
      if (seen.size > FOLLOWERS_MAX && common.add(id)) followers.delete(id);
    }
  }
  return common;
}

function numbered(workload: WorkloadRequests, union: Union): Clusters {
  const starts = new Map<number, number>();
  for (const request of workload) {
    const root = union.rootOf(request.index);
    const at = waits(request) ? Infinity : request.arrivalMicros;
    starts.set(root, Math.min(starts.get(root) ?? Infinity, at));
  }
  const order = [...starts].sort(([a, startA], [b, startB]) => startA - startB || a - b);
  const numbers = new Map(order.map(([root], number) => [root, number]));
  const ofRow = new Int32Array(workload.length);
  const turn = new Int32Array(workload.length);
  const sizes = new Int32Array(order.length);
  for (let row = 0; row < workload.length; row++) {
    ofRow[row] = numbers.get(union.rootOf(row))!;
    turn[row] = sizes[ofRow[row]!]!++;
  }
  return { ofRow, startMicros: Float64Array.from(order, ([, start]) => start), turn };
}

/** Whether a request comes when others have ended, so that its own arrival is not known beforehand. */
export function waits({ thinkMicros, parent }: WorkloadRequest): boolean {
  return thinkMicros !== undefined || parent !== undefined;
}

class Union {
  readonly #up: Int32Array;

  constructor(length: number) {
    this.#up = Int32Array.from({ length }, (_, row) => row);
  }

  rootOf(row: number): number {
    let root = row;
    while (this.#up[root] !== root) root = this.#up[root]!;
    for (let at = row; at !== root;) {
      const next = this.#up[at]!;
      this.#up[at] = root;
      at = next;
    }
    return root;
  }

  join(a: number, b: number): void {
    const [low, high] = [this.rootOf(a), this.rootOf(b)].sort((x, y) => x - y) as [number, number];
    this.#up[high] = low;
  }
}
