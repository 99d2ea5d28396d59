/**
 * Child process: a client that means well. It asks a model of a well engine, for streams and whole answers by turns, one
 * after another over one kept connection, and reports on request how long it waited for first bytes and what was lost.
 */
import { readFileSync } from "node:fs";
import { Agent, request } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";

export interface WellOrder {
  readonly port: number;
  /** Of the gateway and of the engine: whose waits for a core are kept apart. */
  readonly pids: readonly number[];
}

export interface WellReport {
  readonly asked: number;
  readonly lost: readonly string[];
  readonly worstMillis: number;
  /** Without what gateway, engine and this one waited for a core. */
  readonly worstServedMillis: number;
  readonly medianMillis: number;
}

const PAUSE_MILLIS = 10;
const GIVE_UP_MILLIS = 60_000;
const agent = new Agent({ keepAlive: true, maxSockets: 1 });
let waits: number[] = [];
let worstServedMillis = 0;
let lost: string[] = [];

process.on("message", (order: WellOrder | "report") => {
  if (order !== "report") return void run(order);
  const sorted = waits.toSorted((a, b) => a - b);
  const report: WellReport = {
    asked: sorted.length + lost.length,
    lost,
    worstMillis: sorted.at(-1) ?? 0,
    worstServedMillis,
    medianMillis: sorted[sorted.length >> 1] ?? NaN,
  };
  process.send!(report);
  [waits, lost, worstServedMillis] = [[], [], 0];
});
process.on("disconnect", () => process.exit(0));
process.send!({ ready: true });

async function run({ port, pids }: WellOrder): Promise<void> {
  const all = [...pids, process.pid];
  for (let asked = 0; ; asked++) {
    const stream = asked % 4 === 0;
    const before = coreWaitMillis(all);
    const sentAt = performance.now();
    try {
      const firstMillis = await ask(port, stream, asked);
      waits.push(firstMillis);
      const waited = Math.max(0, coreWaitMillis(all) - before);
      // Of a stream the waits after the first byte are among them, so that they are no measure of the wait for it.
      if (!stream) worstServedMillis = Math.max(worstServedMillis, firstMillis - waited);
    } catch (error) {
      lost.push(
        `${(performance.now() - sentAt).toFixed(0)} ms: ${error instanceof Error ? error.message : String(error)}`,
      );
    }
    await sleep(PAUSE_MILLIS);
  }
}

/** Resolves with milliseconds to the first byte of the answer's body, once it is whole. */
function ask(port: number, stream: boolean, number: number): Promise<number> {
  const body = JSON.stringify({ model: "tiny", stream, messages: [{ role: "user", content: `hello ${number}` }] });
  const sentAt = performance.now();
  return new Promise((resolve, reject) => {
    const asked = request(
      {
        port,
        host: "127.0.0.1",
        method: "POST",
        path: "/v1/chat/completions",
        agent,
        headers: { "content-type": "application/json" },
      },
      (answer) => {
        let text = "";
        let firstMillis = NaN;
        answer.setEncoding("utf8");
        answer.on("data", (piece: string) => {
          if (text === "") firstMillis = performance.now() - sentAt;
          text += piece;
        });
        answer.on("end", () => {
          const isWhole = stream ? text.endsWith("data: [DONE]\n\n") : text.endsWith("}}");
          if (answer.statusCode === 200 && isWhole) resolve(firstMillis);
          else reject(new Error(`${answer.statusCode} ${text.slice(-200)}`));
        });
        answer.on("error", reject);
      },
    );
    asked.setTimeout(GIVE_UP_MILLIS, () => asked.destroy(new Error("no answer in a minute")));
    asked.on("error", reject);
    asked.end(body);
  });
}

function coreWaitMillis(pids: readonly number[]): number {
  const nanos = pids.map((pid) => Number(readFileSync(`/proc/${pid}/task/${pid}/schedstat`, "utf8").split(" ")[1]));
  return nanos.reduce((sum, one) => sum + one, 0) / 1e6;
}
