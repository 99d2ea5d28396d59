import { join } from "node:path";
import { MICROS_PER_SECOND } from "#core/base/units.ts";
import { IMPORT_DEFAULTS } from "#trace/import/import-options.ts";
import { openWorkload } from "#trace/import/open-workload.ts";
import type { WorkloadRequest } from "#trace/workload-request.ts";
import { copiesOf } from "../closed-loop/session-copies.ts";
import type { Case, Study } from "./case.ts";

/** A case's requests in sending order, the wanted half and copies of it, from time 0 on. */
export async function caseWorkload(one: Case, study: Study, traces: string): Promise<WorkloadRequest[]> {
  const { half, requestsMax } = study;
  const drawn = one.halves === "draws";
  const all: WorkloadRequest[] = [];
  const { requests } = await openWorkload(drawn ? join("config/workloads", one.path) : join(traces, one.path), {
    ...IMPORT_DEFAULTS,
    seed: study.seed + (drawn && half === "second" ? 1 : 0),
    sessionsPerSecond: one.sessionsPerSecond,
    sharedPrefix: 1,
  });
  for await (const request of requests) all.push(request);
  const kept = half === "all" || drawn ? all : one.halves === "time" ? timeHalf(all, half) : sessionHalf(all, half);
  const cut = one.halves === "sessions" ? wholeSessions(kept, requestsMax) : kept.slice(0, requestsMax);
  const some = fromZero(cut);
  if (one.copies === 1) return [...some];
  const common = commonBlocks(some);
  return copiesOf(some, one.copies, MICROS_PER_SECOND / one.sessionsPerSecond, (id) => common.has(id));
}

/** Blocks that several conversations hold, as a system prompt's: copies have them in common too. */
function commonBlocks(requests: readonly WorkloadRequest[]): ReadonlySet<number> {
  const roots = rootsOf(requests);
  const owner = new Map<number, string>();
  const common = new Set<number>();
  requests.forEach(({ blockIds }, i) => {
    for (const id of blockIds ?? []) {
      const first = owner.get(id);
      if (first === undefined) owner.set(id, roots[i]!);
      else if (first !== roots[i]) common.add(id);
    }
  });
  return common;
}

function timeHalf(all: readonly WorkloadRequest[], half: "first" | "second"): readonly WorkloadRequest[] {
  const middle = Math.ceil(all.length / 2);
  return half === "first" ? all.slice(0, middle) : all.slice(middle);
}

/** Every second conversation, those that it spawned included, as often as before. */
function sessionHalf(all: readonly WorkloadRequest[], half: "first" | "second"): readonly WorkloadRequest[] {
  const roots = rootsOf(all);
  const order = [...new Set(roots)];
  const wanted = new Set(order.filter((_, i) => (i % 2 === 0) === (half === "first")));
  return all.filter((_, i) => wanted.has(roots[i]!)).map((request) => sooner(request, 2));
}

/** Leading conversations up to about the count: none is cut in its middle. */
function wholeSessions(requests: readonly WorkloadRequest[], count: number): readonly WorkloadRequest[] {
  if (requests.length <= count) return requests;
  const roots = rootsOf(requests);
  const wanted = new Set(roots.slice(0, count));
  return requests.filter((_, i) => wanted.has(roots[i]!));
}

/** The conversation that each request's conversation stems from. */
function rootsOf(requests: readonly WorkloadRequest[]): string[] {
  const parents = new Map<string, string>();
  for (const { session, parent } of requests) if (parent !== undefined) parents.set(session, parent.session);
  return requests.map(({ session }) => {
    let root = session;
    for (let up = parents.get(root); up !== undefined; up = parents.get(root)) root = up;
    return root;
  });
}

const sooner = (request: WorkloadRequest, times: number): WorkloadRequest => ({
  ...request,
  arrivalMicros: Math.round(request.arrivalMicros / times),
});

function fromZero(requests: readonly WorkloadRequest[]): readonly WorkloadRequest[] {
  const first = requests.reduce(
    (least, { thinkMicros, arrivalMicros }) => (thinkMicros === undefined ? Math.min(least, arrivalMicros) : least),
    Infinity,
  );
  return requests.map((request, index) => ({
    ...request,
    index,
    arrivalMicros: Math.max(0, request.arrivalMicros - first),
  }));
}
