import { join, resolve } from "node:path";
import { MICROS_PER_SECOND } from "#core/base/units.ts";
import { WorkloadFit } from "#trace/import/fit-workload.ts";
import { IMPORT_DEFAULTS } from "#trace/import/import-options.ts";
import { openWorkload } from "#trace/import/open-workload.ts";
import type { WorkloadRequest } from "#trace/workload-request.ts";
import type { ChoiceCase, HalfName } from "./case.ts";
import { evenly, startedSessions } from "./sessions.ts";

/** Each seed has traffic of its own: so many parts a half falls into by time. */
const SEEDS = 3;
const ID_END = 2 ** 53;
const SALT_STRIDE = 2 ** 41;

type Part = Pick<
  ChoiceCase,
  "path" | "halves" | "rateScale" | "tokenScale" | "outputScale" | "sessionsPerSecond" | "thinkSecondsMax"
>;

/**
 * The requests of a case at their own pace, of a half and a seed from 0 on; no request of a trace that is cut by time is in
 * two of as many `seeds`.
 */
export async function choiceWorkload(
  one: ChoiceCase,
  half: HalfName,
  seed: number,
  requestsMax: number,
  traces: string,
  seeds = SEEDS,
): Promise<WorkloadRequest[]> {
  const parts: Part[] = [one, ...one.beside.map((other) => ({ ...one, ...other }))];
  const all: WorkloadRequest[] = [];
  for (const [i, part] of parts.entries()) {
    const requests = await partOf(part, half, seed, Math.ceil(requestsMax / parts.length), traces, seeds);
    all.push(...requests.map((request) => salted(request, i)));
  }
  const inOrder = one.beside.length === 0 ? all : all.toSorted((a, b) => a.arrivalMicros - b.arrivalMicros);
  return inOrder.map((request, index) => ({ ...request, index }));
}

async function partOf(
  part: Part,
  half: HalfName,
  seed: number,
  requestsMax: number,
  traces: string,
  seeds: number,
): Promise<WorkloadRequest[]> {
  const all = await readAll(part, half, seed, traces);
  return fittedTo(part, cut(all, part, half, seed, requestsMax, seeds));
}

/** Prompts, answers and pauses as a case has them, the first request at 0. */
export function fittedTo(part: Part, kept: readonly WorkloadRequest[]): WorkloadRequest[] {
  const fit = new WorkloadFit({
    tokenScale: part.tokenScale,
    outputScale: part.outputScale,
    inputTokensMax: Infinity,
    outputTokensMax: Infinity,
    oversize: "truncate",
    thinkMicrosMax: part.thinkSecondsMax * MICROS_PER_SECOND,
  });
  const first = Math.min(
    ...kept.map(({ thinkMicros, arrivalMicros }) => (thinkMicros === undefined ? arrivalMicros : Infinity)),
  );
  return kept.flatMap((request) => {
    const fitted = fit.fit(request);
    if (fitted === undefined) return [];
    return [{ ...fitted, arrivalMicros: Math.round(Math.max(0, request.arrivalMicros - first) / part.rateScale) }];
  });
}

async function readAll(part: Part, half: HalfName, seed: number, traces: string): Promise<WorkloadRequest[]> {
  const options = { ...IMPORT_DEFAULTS, seed: seed + (half === "choosing" ? 0 : 1_000), sharedPrefix: 1 };
  if (part.halves === "sessions") {
    const isMine = (_: string, place: number): boolean => (place % 2 === 0) === (half === "choosing");
    return startedSessions(await folders(traces), isMine, seed, part.sessionsPerSecond);
  }
  const path = part.halves === "draws" ? join("config/workloads", part.path) : resolve(traces, part.path);
  const all: WorkloadRequest[] = [];
  const { requests } = await openWorkload(path, options);
  const isMine = part.halves === "conversations" ? conversationsOf(half) : () => true;
  for await (const request of requests) {
    if (isMine(request)) all.push(request);
    if (part.halves === "draws" && all.length === DRAWN_MAX) break;
  }
  return all;
}

/**
 * Every second conversation of a trace without sessions: one is known by the block behind the one that all begin with. A
 * request of a trace of lengths alone is its own.
 */
function conversationsOf(half: HalfName): (request: WorkloadRequest) => boolean {
  const isChoosing = half === "choosing";
  const places = new Map<number, number>();
  return ({ index, blockIds }) => {
    const key = blockIds?.[1] ?? -1 - index;
    let place = places.get(key);
    if (place === undefined) places.set(key, (place = places.size));
    return (place % 2 === 0) === isChoosing;
  };
}

/** Both folders of sessions, read once: no name or block of one is in the other. */
function folders(traces: string): Promise<WorkloadRequest[]> {
  read ??= Promise.all(
    ["weka", "weka-more"].map(async (folder, i) => {
      const { requests } = await openWorkload(join(traces, folder), { ...IMPORT_DEFAULTS, seed: 1, sharedPrefix: 1 });
      const all: WorkloadRequest[] = [];
      for await (const request of requests) all.push(salted(request, i));
      return all;
    }),
  ).then((both) => both.flat());
  return read;
}

let read: Promise<WorkloadRequest[]> | undefined;
const DRAWN_MAX = 10_000;

/** A seed's window of the half, or all sessions with about as many turns each as there is room for. */
function cut(
  all: readonly WorkloadRequest[],
  { halves }: Part,
  half: HalfName,
  seed: number,
  requestsMax: number,
  seeds: number,
): readonly WorkloadRequest[] {
  if (halves === "draws") return all.slice(0, requestsMax);
  if (halves === "time" || halves === "conversations") {
    const middle = Math.ceil(all.length / 2);
    const [from, length] =
      halves === "conversations" ? [0, all.length] : half === "choosing" ? [0, middle] : [middle, all.length - middle];
    const start = from + Math.floor(((seed % seeds) * length) / seeds);
    return all.slice(start, Math.min(start + requestsMax, start + Math.floor(length / seeds)));
  }
  return evenly(all, requestsMax);
}

/** Blocks and sessions of two parts are never the same. */
function salted(request: WorkloadRequest, salt: number): WorkloadRequest {
  if (salt === 0) return request;
  const prefixed = (session: string): string => (session === "" ? "" : `${salt}/${session}`);
  return {
    ...request,
    session: prefixed(request.session),
    parent: request.parent === undefined ? undefined : { ...request.parent, session: prefixed(request.parent.session) },
    joins: request.joins.map(prefixed),
    blockIds: request.blockIds?.map((id) => (id + salt * SALT_STRIDE) % ID_END),
  };
}
