import type { PeerReported } from "#core/request/peer-news.ts";
import { Replay } from "#shadow/recorded/replay.ts";
import { TraceReader } from "#trace/reader.ts";

/** A request that a gateway let in, in microseconds of the machine's wall clock. */
export interface LetIn {
  readonly tenant: string;
  readonly at: number;
  endedAt: number;
}

/** What one gateway's trace shows of limits: whom it let in, and when it knew of those whom others let in. */
export interface GatewayTrace {
  readonly letIn: readonly LetIn[];
  /** By replica, when the charge of each of its requests came, by the number of the request. */
  readonly known: ReadonlyMap<string, ReadonlyMap<number, number>>;
  readonly decisions: number;
  /** That come out otherwise in replay, or cannot be compared. */
  readonly differing: number;
}

/** The trace of one run in which no request waited: requests are numbered as they are let in. */
export async function readQuotaTrace(folder: string): Promise<GatewayTrace> {
  const replay = new Replay();
  const letIn: LetIn[] = [];
  const open = new Map<string, LetIn>();
  const known = new Map<string, Map<number, number>>();
  let wallStart = 0;
  for await (const item of new TraceReader(folder, { strict: false }).items()) {
    replay.take(item);
    if (item.kind === "run") wallStart = item.header.startWallMicros;
    if (item.kind !== "record") continue;
    const { input, decision } = item;
    const at = wallStart + input.at;
    if (input.kind === "request-arrived" && decision?.kind === "routed") {
      const one: LetIn = { tenant: input.request.tenant, at, endedAt: Infinity };
      letIn.push(one);
      open.set(input.request.id, one);
    } else if (input.kind === "request-finished") {
      const one = open.get(input.requestId);
      if (one !== undefined) one.endedAt = at;
      open.delete(input.requestId);
    } else if (input.kind === "peer-reported") learn(known, input, at);
  }
  const { decisions, differences, unverifiable } = replay.result();
  return { letIn, known, decisions, differing: differences + unverifiable };
}

function learn(known: Map<string, Map<number, number>>, { peer, news }: PeerReported, at: number): void {
  const times = known.get(peer) ?? new Map<number, number>();
  known.set(peer, times);
  for (const one of news) if (one.kind === "charged" && !times.has(one.request)) times.set(one.request, at);
}

/**
 * The longest time, in microseconds, from a request's being let in at one gateway until another one knew; Infinity where
 * one never did. Traces by replica.
 */
export function longestLag(traces: ReadonlyMap<string, GatewayTrace>): number {
  let longest = 0;
  for (const [sender, { letIn }] of traces) {
    for (const [receiver, { known }] of traces) {
      if (receiver === sender) continue;
      const times = known.get(sender);
      letIn.forEach(({ at }, i) => (longest = Math.max(longest, (times?.get(i + 1) ?? Infinity) - at)));
    }
  }
  return longest;
}

/** The most requests of one tenant that one gateway let in within so many microseconds. */
export function mostWithin(traces: Iterable<GatewayTrace>, tenant: string, micros: number): number {
  let most = 0;
  for (const { letIn } of traces) {
    const times = letIn.filter((one) => one.tenant === tenant).map(({ at }) => at);
    let from = 0;
    for (let i = 0; i < times.length; i++) {
      while (times[i]! - times[from]! > micros) from++;
      most = Math.max(most, i - from + 1);
    }
  }
  return most;
}

/** The most requests of one tenant in flight at all gateways together. */
export function mostInFlight(traces: Iterable<GatewayTrace>, tenant: string): number {
  const steps = [...traces]
    .flatMap(({ letIn }) => letIn)
    .filter((one) => one.tenant === tenant)
    .flatMap(({ at, endedAt }) => [
      { at, by: 1 },
      { at: endedAt, by: -1 },
    ])
    .toSorted((a, b) => a.at - b.at || a.by - b.by);
  let now = 0;
  let most = 0;
  for (const { by } of steps) most = Math.max(most, (now += by));
  return most;
}
