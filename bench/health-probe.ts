/**
 * Child process: asks for /healthz over one kept connection, a few milliseconds after each answer, and reports to its parent
 * on request how long it waited at most since its last report.
 */
import { connect } from "node:net";

const PAUSE_MILLIS = 3;
const REQUEST = "GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n";

/** Waits in milliseconds since the parent last asked. */
export interface HealthReport {
  readonly worstMillis: number;
  readonly medianMillis: number;
  readonly answers: number;
}

let waits: number[] = [];
let sentAt = 0;

function ask(port: number): void {
  const socket = connect(port, "127.0.0.1");
  socket.setNoDelay(true);
  const send = (): void => {
    sentAt = performance.now();
    socket.write(REQUEST);
  };
  socket.on("connect", send);
  socket.on("data", () => {
    waits.push(performance.now() - sentAt);
    setTimeout(send, PAUSE_MILLIS);
  });
  socket.on("error", (error) => {
    throw error;
  });
}

process.on("message", (order: { readonly port: number } | "report") => {
  if (order !== "report") return ask(order.port);
  const sorted = waits.toSorted((a, b) => a - b);
  // A wait that is still on counts as well.
  const worstMillis = Math.max(sorted.at(-1) ?? 0, performance.now() - sentAt);
  process.send!({ worstMillis, medianMillis: sorted[sorted.length >> 1] ?? Number.NaN, answers: sorted.length });
  waits = [];
});
process.on("disconnect", () => process.exit(0));
process.send!({ ready: true });
