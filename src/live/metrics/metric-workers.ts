import type { WorkersStatus } from "../status/workers-status.ts";
import type { Family, Row } from "./metric-state.ts";

export interface WorkerSources {
  /** Left out where one thread does all. */
  readonly workers?: () => WorkersStatus;
}

/** Threads that carry requests. */
export function registerWorkers({ workers: status }: WorkerSources, family: Family, row: Row): void {
  if (status === undefined) return;
  const up = ({ isUp }: { readonly isUp: boolean }): number => (isUp ? 1 : 0);
  family("gauge", "worker_up", "1 while a worker takes requests.", () =>
    status().workers.map((worker) => row(up(worker), { worker: String(worker.worker) })),
  );
  family("gauge", "worker_requests_in_flight", "Requests of a worker that the router knows.", () =>
    status().workers.map(({ worker, requestsInFlight }) => row(requestsInFlight, { worker: String(worker) })),
  );
  family("counter", "worker_restarts_total", "Workers that ended unexpectedly and were started again.", () => [
    row(status().restarts),
  ]);
  family("counter", "worker_requests_lost_total", "Requests that ended with their worker.", () => [
    row(status().requestsLost),
  ]);
}
