/**
 * CPU time that sharing costs a request, step by step, without sockets: at the gateway that reports it, and at each one
 * that reads the report. Prompts of 8K tokens whose first 500 blocks are known; five requests a report.
 *
 *     npx node bench/sharing-cost.ts [--requests 20000]
 */
import { parseArgs } from "node:util";
import type { Input } from "#core/input.ts";
import { OwnNews } from "#core/peer/own-news.ts";
import { ReportDecoder, readHead } from "#live/share/report-decoder.ts";
import { ReportEncoder } from "#live/share/report-encoder.ts";
import { chain, request } from "../test/core/state.ts";
import { newRouter } from "../test/live/share/memory-fleet.ts";

const { values: flags } = parseArgs({ options: { requests: { type: "string", default: "20000" } } });
const REQUESTS = Number(flags.requests);
const PER_REPORT = 5;
const [here, there] = [newRouter(), newRouter()];
const own = new OwnNews();
const encoder = new ReportEncoder();
const decoder = new ReportDecoder();
const chains = Array.from({ length: 64 }, (_, i) => chain(i, 600));
const millis = { decide: 0, follow: 0, encode: 0, decode: 0, accept: 0 };
let bytes = 0;
let sequence = 0;

function timed<T>(step: keyof typeof millis, work: () => T): T {
  const before = performance.now();
  const result = work();
  millis[step] += performance.now() - before;
  return result;
}

function inputsOf(i: number): Input[] {
  const whole = chains[i % chains.length]!;
  const length = 500 + (i % 90);
  const requestId = `r${i}`;
  const at = 100 * i;
  const blocks = { hashes: whole.hashes.subarray(0, 2 * length), length, blockTokens: 16 };
  const counts = { promptTokens: 16 * length, cachedTokens: 8_000, outputTokens: 100 };
  return [
    { kind: "request-arrived", at, request: request({ id: requestId, blocks }) },
    { kind: "first-token", at: at + 1, requestId },
    { kind: "request-finished", at: at + 2, requestId, outcome: "ok", ...counts },
  ];
}

function report(at: number): void {
  const head = { kind: "news", fingerprint: 1, replica: "r", epoch: 1, sequence: ++sequence } as const;
  const sent = timed("encode", () => encoder.encode({ ...head, news: own.take() }));
  bytes += sent.length;
  const news = timed("decode", () => decoder.news(readHead(sent).rest));
  timed("accept", () => there.accept({ kind: "peer-reported", at, peer: "p", epoch: 1, sequence, news }));
}

// The first half is for the compiler.
for (let i = 0; i < 2 * REQUESTS; i++) {
  if (i === REQUESTS) {
    bytes = 0;
    for (const step of Object.keys(millis) as (keyof typeof millis)[]) millis[step] = 0;
  }
  for (const input of inputsOf(i)) {
    const decision = timed("decide", () => here.accept(input));
    timed("follow", () => own.follow(input, decision));
  }
  if (i % PER_REPORT === PER_REPORT - 1) report(100 * i + 3);
}
const micros = (of: number) => ((1_000 * of) / REQUESTS).toFixed(1);
console.log(`its decision and inputs  ${micros(millis.decide)} us a request`);
console.log(`reporting it             ${micros(millis.follow + millis.encode)} us`);
console.log(`reading it, each other   ${micros(millis.decode + millis.accept)} us (${micros(millis.decode)} to read)`);
console.log(`bytes                    ${(bytes / REQUESTS).toFixed(0)} a request`);
