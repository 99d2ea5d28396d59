import type { Server } from "node:http";

import type { InFlight } from "../http/in-flight.ts";
import type { ClientConnections } from "./client-connections.ts";

/** Of a gateway, what ends with it. */
interface DrainedShared {
  readonly connections: ClientConnections;
  readonly inFlight: InFlight;
  readonly pools: { destroy(): Promise<void> };
  phase: "serving" | "leaving" | "draining";
}

export interface DrainTimes {
  /** Milliseconds in which everything is still served. */
  readonly noticeMillis: number;
  /** Milliseconds after that in which requests in flight may end, and connections that clients kept. */
  readonly graceMillis: number;
  /** A connection that was idle for so long ends: nothing is on the way on it. */
  readonly idleMillis: number;
}

/** What came of it. */
export interface Drained {
  /** Requests that had not ended in time. */
  readonly requestsCut: number;
}

/**
 * Ends a gateway's servers. First it is about to leave: everything is served, but each answer announces the end of its
 * connection, so that clients move on. Then it drains: connections end as they are idle, what still comes on them is
 * served, and inference on new ones is refused, while metrics and status pages answer until the last request is over. What
 * has not ended by then is answered with an error, and cut.
 */
export async function drainGateway(
  servers: readonly Server[],
  shared: DrainedShared,
  times: DrainTimes,
): Promise<Drained> {
  const { connections } = shared;
  shared.phase = "leaving";
  connections.leave();
  const noticeOver = performance.now() + (servers.some(({ listening }) => listening) ? times.noticeMillis : 0);
  for (let left = noticeOver - performance.now(); left > 0; left = noticeOver - performance.now()) {
    await sleep(Math.min(left, DRAIN_POLL_MILLIS));
    await connections.endIdle(times.idleMillis);
  }
  shared.phase = "draining";
  connections.endNotice();
  const deadline = performance.now() + times.graceMillis;
  while (
    ((await connections.endIdle(times.idleMillis)) > 0 || shared.inFlight.size > 0) &&
    performance.now() < deadline
  ) {
    if (performance.now() > deadline - times.graceMillis / 2) connections.insist();
    await sleep(DRAIN_POLL_MILLIS);
  }
  const requestsCut = shared.inFlight.size;
  shared.inFlight.each((member) => member.dismiss?.());
  const written = performance.now() + LAST_WORDS_MILLIS;
  while (shared.inFlight.size > 0 && performance.now() < written) await sleep(DRAIN_POLL_MILLIS);
  await Promise.all(servers.map(ended));
  // The answers that were cut are notified some turns after their sockets.
  while (shared.inFlight.size > 0) await sleep(1);
  shared.inFlight.stop();
  await shared.pools.destroy();
  return { requestsCut };
}

/** With all its connections. */
async function ended(server: Server): Promise<void> {
  const closed = new Promise<void>((resolve) => server.close(() => resolve()));
  server.closeAllConnections();
  await closed;
}

const DRAIN_POLL_MILLIS = 50;
/** For what cut requests are answered with; a client that does not read is not waited for. */
const LAST_WORDS_MILLIS = 250;

function sleep(millis: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, millis));
}
