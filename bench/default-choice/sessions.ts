import { randomFor } from "#core/base/random.ts";
import { MICROS_PER_SECOND } from "#core/base/units.ts";
import type { WorkloadRequest } from "#trace/workload-request.ts";

/**
 * The sessions that are wanted by their name and their place among all, those that they spawned included. Each seed has an
 * order and times of its own for their starts.
 */
export function startedSessions(
  all: readonly WorkloadRequest[],
  isWanted: (root: string, place: number) => boolean,
  seed: number,
  sessionsPerSecond: number,
): WorkloadRequest[] {
  const parents = new Map<string, string>();
  for (const { session, parent } of all) if (parent !== undefined) parents.set(session, parent.session);
  const rootOf = (session: string): string => {
    let root = session;
    for (let up = parents.get(root); up !== undefined; up = parents.get(root)) root = up;
    return root;
  };
  const roots = [...new Set(all.map(({ session }) => rootOf(session)))];
  const random = randomFor(seed, 17);
  const mine = roots
    .filter(isWanted)
    .map((root) => [random.next(), root] as const)
    .toSorted(([a], [b]) => a - b)
    .map(([, root]) => root);
  let at = 0;
  const starts = new Map(
    mine.map((root) => [root, (at += (-Math.log(1 - random.next()) * MICROS_PER_SECOND) / sessionsPerSecond)]),
  );
  return all.flatMap((request) => {
    const start = starts.get(rootOf(request.session));
    return start === undefined ? [] : [{ ...request, arrivalMicros: Math.round(start) }];
  });
}

/** The first turns of each conversation, as many as make up the count. */
export function evenly(all: readonly WorkloadRequest[], requestsMax: number): WorkloadRequest[] {
  const kept = (turns: number): WorkloadRequest[] => wholeUntil(all, ({ turn }) => turn < turns);
  let turns = 1;
  while (turns < 512 && kept(turns * 2).length <= requestsMax) turns *= 2;
  for (let step = turns / 2; step >= 1; step = Math.floor(step / 2)) {
    if (kept(turns + step).length <= requestsMax) turns += step;
  }
  return kept(turns);
}

/** Each session up to its first turn that is not `wanted`; what a cut turn spawned, or waited for, is left out as well. */
export function wholeUntil(
  all: readonly WorkloadRequest[],
  wanted: (request: WorkloadRequest) => boolean,
): WorkloadRequest[] {
  const last = new Map<string, number>();
  return all.filter((request) => {
    const { session, turn, parent, joins } = request;
    if (!wanted(request)) return false;
    if (session === "") return true;
    if (parent !== undefined && (last.get(parent.session) ?? -1) < parent.turn) return false;
    if (turn > 0 && (last.get(session) ?? -1) < turn - 1) return false;
    if (joins.some((joined) => !last.has(joined))) return false;
    last.set(session, turn);
    return true;
  });
}
