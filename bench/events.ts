/**
 * CPU of a streamed event that is one read and one write: engines send the next event only once the client has the one
 * before, so no two lie in one read, and the figure depends little on what else the machine does.
 *
 *     npx node bench/events.ts [--rounds 15] [--beside FOLDER]... [--streams 32]
 *
 * The gateway is what `serve` starts, beside a bare Hono + dispatch proxy and, with --beside, the gateways of other
 * checkouts (with their node_modules); in turns, pinned to the first core, load on the last. Ratios are medians of those of
 * each round.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { availableParallelism } from "node:os";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { endAll, kept, message } from "./children.ts";
import { cpuMicros, pinned, startGateway } from "./gateway-process.ts";
import type { LockstepOrder } from "./lockstep-streams.ts";
import { median } from "./median.ts";

const EVENTS = 200;
const WARM_UP_EVENTS = 60_000;

interface Proxy {
  readonly name: string;
  readonly port: number;
  readonly pid: number;
}

const { values } = parseArgs({
  options: { rounds: { type: "string" }, beside: { type: "string", multiple: true }, streams: { type: "string" } },
});
const rounds = Number(values.rounds ?? 15);
const streams = Number(values.streams ?? 32);
const lastCore = availableParallelism() - 1;

try {
  await main();
} finally {
  endAll();
}

async function main(): Promise<void> {
  const load = child("lockstep-streams.ts", lastCore, []);
  const engine = (await message(load)) as { port: number };
  const proxies: Proxy[] = [{ name: "gnomon", ...(await startGateway([engine.port], [], 0)) }];
  for (const root of values.beside ?? [])
    proxies.push({ name: root, ...(await startGateway([engine.port], [], 0, resolve(root))) });
  const bare = child("bare-proxy.ts", 0, [String(engine.port)]);
  proxies.push({ name: "bare", port: ((await message(bare)) as { port: number }).port, pid: bare.pid! });
  for (const proxy of proxies) for (let done = 0; done < WARM_UP_EVENTS;) done += await run(load, proxy);
  const costs = proxies.map((): number[] => []);
  for (let round = 0; round < rounds; round++) {
    const order = proxies.map((_, at) => at);
    for (const at of round % 2 === 0 ? order : order.toReversed()) {
      const { pid } = proxies[at]!;
      const before = cpuMicros([pid]);
      const events = await run(load, proxies[at]!);
      costs[at]!.push((cpuMicros([pid]) - before) / events);
    }
  }
  console.log(`us of CPU per event, medians of ${rounds} rounds of ${streams * EVENTS}; gnomon as a multiple of each`);
  for (const [at, { name }] of proxies.entries()) {
    const ratio = median(costs[0]!.map((cost, round) => cost / costs[at]![round]!));
    console.log(`${name.padEnd(16)}${median(costs[at]!).toFixed(1).padStart(8)}${ratio.toFixed(3).padStart(8)}`);
  }
}

async function run(load: ChildProcess, { port }: Proxy): Promise<number> {
  load.send({ port, streams, events: EVENTS } satisfies LockstepOrder);
  return ((await message(load)) as { events: number }).events;
}

function child(file: string, core: number, args: readonly string[]): ChildProcess {
  const [command, all] = pinned(core, process.execPath, [join(import.meta.dirname, file), ...args]);
  return kept(spawn(command, all, { stdio: ["ignore", "inherit", "inherit", "ipc"] }));
}
