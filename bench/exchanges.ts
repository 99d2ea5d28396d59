/**
 * What a request and its answer in one piece cost between the decision and the engine and back: read past undici, where
 * the answer is plain, beside undici alone (`limits.plainAnswerBytesMax: 0`), in turns in one process.
 *
 *     npx node bench/exchanges.ts [--rounds 9] [--requests 6000] [--bytes 2048]
 *
 * CPU is that of this process, which sends 32 requests at a time to an engine in another process and reads their answers;
 * no client, no decision. KB are what is allocated in V8's heap for each. The lowest round and the median are shown.
 */
import { spawn } from "node:child_process";
import { join } from "node:path";
import { parseArgs } from "node:util";
import v8 from "node:v8";

import { DEFAULT_LIMITS } from "#live/request/limits.ts";
import { Attempt } from "#live/upstream/attempt.ts";
import { UpstreamClients } from "#live/upstream/upstream-clients.ts";
import type { Upstream } from "#live/upstream/upstream-pools.ts";
import { endAll, kept, message } from "./children.ts";
import { median } from "./median.ts";

const AT_ONCE = 32;
const { values } = parseArgs({
  options: {
    rounds: { type: "string", default: "9" },
    requests: { type: "string", default: "6000" },
    bytes: { type: "string", default: "2048" },
  },
});
const requests = Number(values.requests);
const body = Buffer.from(JSON.stringify({ model: "tiny", text: "x".repeat(Math.max(Number(values.bytes) - 30, 1)) }));
const headers = ["x-request-id", "0b9d4f9e-6f5c-4b8f-9d5e-0a6f4d3c2b1a", "content-type", "application/json"];
headers.push("accept", "*/*", "user-agent", "bench", "authorization", "Bearer none");

interface Way {
  readonly name: string;
  readonly upstream: Upstream;
  readonly micros: number[];
  readonly kilobytes: number[];
}

const stub = kept(
  spawn(process.execPath, [join(import.meta.dirname, "stub-upstream.ts"), "1"], {
    stdio: ["ignore", "inherit", "inherit", "ipc"],
  }),
);
try {
  const { ports } = (await message(stub)) as { ports: number[] };
  await compare(`http://127.0.0.1:${ports[0]}`);
} finally {
  endAll();
}

async function compare(url: string): Promise<void> {
  const ways = [way("undici", url, 0), way("past undici", url, DEFAULT_LIMITS.plainAnswerBytesMax)];
  for (let round = -3; round < Number(values.rounds); round++) {
    for (const one of round % 2 === 0 ? ways : ways.toReversed()) {
      const [cpu, heap] = [process.cpuUsage(), allocated()];
      await run(one.upstream);
      const { user, system } = process.cpuUsage(cpu);
      if (round < 0) continue;
      one.micros.push((user + system) / requests);
      one.kilobytes.push((allocated() - heap) / requests / 1_024);
    }
  }
  for (const { name, micros, kilobytes } of ways) {
    const figures = `${Math.min(...micros).toFixed(1)} us, median ${median(micros).toFixed(1)}`;
    console.log(`${name.padEnd(12)} ${figures}; ${median(kilobytes).toFixed(1)} KB allocated`);
  }
  const ratios = ways[1]!.micros.map((micros, i) => micros / ways[0]!.micros[i]!);
  console.log(`past undici / undici, median of ${ratios.length} pairs: ${median(ratios).toFixed(2)}`);
  await Promise.all(ways.map(({ upstream }) => upstream.clients.destroy()));
}

function way(name: string, url: string, plainAnswerBytesMax: number): Way {
  const clients = new UpstreamClients(url, { ...DEFAULT_LIMITS, plainAnswerBytesMax });
  return { name, upstream: { inFlight: 0, clients } as unknown as Upstream, micros: [], kilobytes: [] };
}

function run(upstream: Upstream): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  let left = requests;
  let sent = 0;
  const next = (): void => {
    if (sent++ >= requests) return;
    const attempt = new Attempt(
      upstream,
      { path: "/v1/chat/completions", headers, body, whole: true },
      {
        answerStarted: () => {},
        answerData: () => {},
        answerEnded: () => {
          if (--left === 0) resolve();
          else next();
        },
        attemptReconnects: () => {},
        attemptBroke: reject,
      },
    );
    attempt.send();
  };
  for (let i = 0; i < AT_ONCE; i++) next();
  return promise;
}

/** Bytes that were ever allocated in V8's heap. */
function allocated(): number {
  return (v8.getHeapStatistics() as { total_allocated_bytes?: number }).total_allocated_bytes ?? Number.NaN;
}
