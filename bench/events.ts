/**
 * CPU of a streamed event that is one read and one write: engines send the next event only once the client has the one
 * before, so no two lie in one read, and the figure depends little on what else the machine does.
 *
 *     npx node bench/events.ts [--rounds 15] [--beside FOLDER]... [--peers FOLDER] [--streams 32]
 *
 * The gateway is what `serve` starts, beside a bare Hono + dispatch proxy and, with --beside, the gateways of other
 * checkouts (with their node_modules), with --peers routers of the field and nginx, as in bench/gateway.ts; in turns, pinned to the first core, load on the last. Ratios are medians of those of
 * each round.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { endAll, kept, message } from "./children.ts";
import { cpuMicros, pinned, startGateway } from "./gateway-process.ts";
import type { LockstepOrder } from "./lockstep-streams.ts";
import { median } from "./median.ts";
import { startNginx } from "./nginx-process.ts";
import { startPeers } from "./peer-process.ts";

const EVENTS = 200;
const WARM_UP_EVENTS = 60_000;

interface Proxy {
  readonly name: string;
  readonly port: number;
  readonly pids: readonly number[];
}

const { values } = parseArgs({
  options: {
    rounds: { type: "string" },
    beside: { type: "string", multiple: true },
    streams: { type: "string" },
    peers: { type: "string" },
  },
});
const rounds = Number(values.rounds ?? 15);
const streams = Number(values.streams ?? 32);
const lastCore = availableParallelism() - 1;

const scratch = mkdtempSync(join(tmpdir(), "gnomon-bench-"));

try {
  await main();
} finally {
  endAll();
  rmSync(scratch, { recursive: true, force: true });
}

async function main(): Promise<void> {
  const load = child("lockstep-streams.ts", lastCore, []);
  const engine = (await message(load)) as { port: number };
  const gnomon = async (name: string, root?: string): Promise<Proxy> => {
    const { port, pid } = await startGateway([engine.port], [], 0, root);
    return { name, port, pids: [pid] };
  };
  const proxies: Proxy[] = [await gnomon("gnomon")];
  for (const root of values.beside ?? []) proxies.push(await gnomon(root, resolve(root)));
  if (values.peers !== undefined) {
    const nginx = await startNginx([engine.port], scratch);
    if (nginx !== undefined) proxies.push({ name: "nginx", ...nginx });
    proxies.push(...(await startPeers([engine.port], resolve(values.peers))));
  }
  const bare = child("bare-proxy.ts", 0, [String(engine.port)]);
  proxies.push({ name: "bare", port: ((await message(bare)) as { port: number }).port, pids: [bare.pid!] });
  for (const proxy of proxies) for (let done = 0; done < WARM_UP_EVENTS;) done += await run(load, proxy);
  const costs = proxies.map((): number[] => []);
  for (let round = 0; round < rounds; round++) {
    const order = proxies.map((_, at) => at);
    for (const at of round % 2 === 0 ? order : order.toReversed()) {
      const { pids } = proxies[at]!;
      const before = cpuMicros(pids);
      const events = await run(load, proxies[at]!);
      costs[at]!.push((cpuMicros(pids) - before) / events);
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
