import { DueQueue } from "./due-queue.ts";
import type { WorkloadRequest } from "./workload-request.ts";

/**
 * A workload's requests, whatever their order, in groups of what depends on one another: a conversation's turns with the
 * conversations that they start or wait for. Groups come by their first arrival, then by the least index in them. Inside
 * one, a turn follows the turn before it, the turn that started its conversation and all turns that it joins, else it
 * goes by arrival, then by index.
 */
export function* conversations(requests: readonly WorkloadRequest[]): Generator<readonly WorkloadRequest[]> {
  if (standTogether(requests)) yield* runs(requests);
  else yield* grouped(requests);
}

/** The earliest arrival of a group; of one without any, the least of the recorded times. */
export function startOf(group: readonly WorkloadRequest[]): number {
  let start = Infinity;
  for (const { thinkMicros, arrivalMicros } of group)
    if (thinkMicros === undefined && arrivalMicros < start) start = arrivalMicros;
  if (start < Infinity) return start;
  return group.reduce((least, { arrivalMicros }) => Math.min(least, arrivalMicros), Infinity);
}

/** Whether turns stand behind one another, groups in order, and nothing links two conversations. */
function standTogether(requests: readonly WorkloadRequest[]): boolean {
  const seen = new Set<string>();
  let first: WorkloadRequest | undefined;
  let lastTurn = 0;
  for (const request of requests) {
    const { session, turn, parent, joins, thinkMicros, arrivalMicros } = request;
    if (parent !== undefined || joins.length > 0) return false;
    const isNext = first !== undefined && session !== "" && session === first.session;
    if (first !== undefined) {
      if (isNext && (turn <= lastTurn || request.index < first.index)) return false;
      if (thinkMicros === undefined && arrivalMicros < first.arrivalMicros) return false;
      if (!isNext && arrivalMicros === first.arrivalMicros && request.index < first.index) return false;
    }
    lastTurn = turn;
    if (isNext) continue;
    if (thinkMicros !== undefined || seen.has(session)) return false;
    if (session !== "") seen.add(session);
    first = request;
  }
  return true;
}

function* runs(requests: readonly WorkloadRequest[]): Generator<readonly WorkloadRequest[]> {
  let from = 0;
  for (let i = 1; i <= requests.length; i++) {
    const { session } = requests[from]!;
    if (i < requests.length && session !== "" && requests[i]!.session === session) continue;
    yield requests.slice(from, i);
    from = i;
  }
}

function* grouped(requests: readonly WorkloadRequest[]): Generator<readonly WorkloadRequest[]> {
  const links = new Links();
  for (const { session, parent, joins } of requests) {
    if (session === "") continue;
    if (parent !== undefined) links.join(session, parent.session);
    for (const name of joins) links.join(session, name);
  }
  const groups: WorkloadRequest[][] = [];
  const byRoot = new Map<string, WorkloadRequest[]>();
  for (const request of requests) {
    const root = request.session === "" ? "" : links.rootOf(request.session);
    const known = root === "" ? undefined : byRoot.get(root);
    if (known !== undefined) {
      known.push(request);
      continue;
    }
    const begun = [request];
    groups.push(begun);
    if (root !== "") byRoot.set(root, begun);
  }
  const keyed = groups.map((group) => ({
    group,
    start: startOf(group),
    index: group.reduce((least, { index }) => Math.min(least, index), Infinity),
  }));
  keyed.sort((a, b) => a.start - b.start || a.index - b.index);
  for (const { group } of keyed) yield group.length === 1 ? group : ordered(group);
}

/**
 * What comes before what, by arrival and index where nothing else decides. Of a circle each turn comes in its place by
 * these.
 */
function ordered(group: readonly WorkloadRequest[]): WorkloadRequest[] {
  const turns = new Map<string, WorkloadRequest[]>();
  for (const request of group) {
    const list = turns.get(request.session);
    if (list === undefined) turns.set(request.session, [request]);
    else list.push(request);
  }
  for (const list of turns.values()) list.sort((a, b) => a.turn - b.turn || a.index - b.index);
  const waits = new Map<WorkloadRequest, number>();
  const followers = new Map<WorkloadRequest, WorkloadRequest[]>();
  const follow = (request: WorkloadRequest, before: WorkloadRequest | undefined) => {
    if (before === undefined || before === request) return;
    waits.set(request, (waits.get(request) ?? 0) + 1);
    followers.set(before, [...(followers.get(before) ?? []), request]);
  };
  for (const list of turns.values()) {
    list.forEach((request, i) => {
      follow(request, list[i - 1]);
      const { parent, joins } = request;
      if (i === 0 && parent !== undefined)
        follow(
          request,
          turns.get(parent.session)?.findLast(({ turn }) => turn <= parent.turn),
        );
      for (const name of joins) if (name !== request.session) follow(request, turns.get(name)?.at(-1));
    });
  }
  return inOrder(group, waits, followers);
}

function inOrder(
  group: readonly WorkloadRequest[],
  waits: Map<WorkloadRequest, number>,
  followers: ReadonlyMap<WorkloadRequest, readonly WorkloadRequest[]>,
): WorkloadRequest[] {
  const sorted = group.toSorted((a, b) => a.arrivalMicros - b.arrivalMicros || a.index - b.index);
  const ranks = new Map(sorted.map((request, rank) => [request, rank]));
  const ready = new DueQueue<WorkloadRequest>();
  for (const request of sorted) if (!waits.has(request)) ready.push(ranks.get(request)!, request);
  const order: WorkloadRequest[] = [];
  for (let next = ready.pop(); next !== undefined; next = ready.pop()) {
    order.push(next);
    ranks.delete(next);
    for (const follower of followers.get(next) ?? []) {
      const left = waits.get(follower)! - 1;
      waits.set(follower, left);
      if (left === 0) ready.push(ranks.get(follower)!, follower);
    }
  }
  return [...order, ...ranks.keys()];
}

/** Names in sets that grow together. */
class Links {
  readonly #above = new Map<string, string>();

  rootOf(name: string): string {
    let root = name;
    for (let above = this.#above.get(root); above !== undefined; above = this.#above.get(root)) root = above;
    // Paths are shortened, or long chains of spawns would be walked over and over.
    for (let at = name; at !== root;) {
      const above = this.#above.get(at)!;
      this.#above.set(at, root);
      at = above;
    }
    return root;
  }

  join(a: string, b: string): void {
    const [one, other] = [this.rootOf(a), this.rootOf(b)];
    if (one !== other) this.#above.set(one, other);
  }
}
