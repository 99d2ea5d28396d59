/**
 * Child process: asks for /healthz over one kept connection, a few milliseconds after each answer, and reports to its parent
 * on request how long it waited at most since its last report.
 */
import { readFileSync } from "node:fs";
import { connect } from "node:net";

const PAUSE_MILLIS = 3;
const REQUEST = "GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n";

/** Where to ask, and the process whose waits for a core are kept apart. */
export interface ProbeOrder {
  readonly port: number;
  readonly pid?: number;
}

/** Waits in milliseconds since the parent last asked. */
export interface HealthReport {
  /** The worst, without what the process asked and this one waited for a core; of a process that was named. */
  readonly worstServedMillis: number;
  readonly worstMillis: number;
  readonly medianMillis: number;
  readonly answers: number;
}

let waits: number[] = [];
let worstServedMillis = 0;
let sentAt = 0;
let coreWaitAt = 0;
let pids: readonly number[] = [];

/** How long the first threads of both were ready to run and did not. */
function coreWaitMillis(): number {
  const nanos = pids.map((pid) => Number(readFileSync(`/proc/${pid}/task/${pid}/schedstat`, "utf8").split(" ")[1]));
  return nanos.reduce((sum, one) => sum + one, 0) / 1e6;
}

function served(): void {
  worstServedMillis = Math.max(worstServedMillis, performance.now() - sentAt - (coreWaitMillis() - coreWaitAt));
}

function ask({ port, pid }: ProbeOrder): void {
  if (pid !== undefined) pids = [pid, process.pid];
  const socket = connect(port, "127.0.0.1");
  socket.setNoDelay(true);
  const send = (): void => {
    sentAt = performance.now();
    coreWaitAt = coreWaitMillis();
    socket.write(REQUEST);
  };
  socket.on("connect", send);
  socket.on("data", () => {
    waits.push(performance.now() - sentAt);
    served();
    setTimeout(send, PAUSE_MILLIS);
  });
  socket.on("error", (error) => {
    throw error;
  });
}

process.on("message", (order: ProbeOrder | "report") => {
  if (order !== "report") return ask(order);
  const sorted = waits.toSorted((a, b) => a - b);
  // A wait that is still on counts as well.
  const worstMillis = Math.max(sorted.at(-1) ?? 0, performance.now() - sentAt);
  if (sorted.length === 0) served();
  process.send!({
    worstMillis,
    worstServedMillis,
    medianMillis: sorted[sorted.length >> 1] ?? Number.NaN,
    answers: sorted.length,
  });
  waits = [];
  worstServedMillis = 0;
});
process.on("disconnect", () => process.exit(0));
process.send!({ ready: true });
