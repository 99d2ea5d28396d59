/**
 * Child process: an engine that lists a model of its own and means harm with everything else, in turns of its parent's
 * order: its metrics page, its answers, and the KV events that it publishes are captured ones, mutated, or made to be dear.
 */
import { readFileSync, readdirSync } from "node:fs";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { Publisher } from "zeromq";
import { READERS } from "../parsers/readers.ts";
import { METRIC_SHAPES, type Shape, STREAM_SHAPES } from "../parsers/shapes.ts";
import { captured } from "../../test/live/kv-events/captured.ts";
import { Mutator } from "./mutator.ts";

const HOSTILE_MODEL = "evil";
export type HostileTurn = "metrics" | "answers" | "events" | "all" | "none";

const GOLDEN = join(import.meta.dirname, "../../test/golden/vllm-http");
const PAGE_BYTES_MAX = 2_097_152;
const ANSWER_BYTES_MAX = 2_097_152;
const MESSAGE_BYTES_MAX = 3_145_728;
const EVENT_MILLIS = 20;
const mutator = new Mutator(Number(process.argv[2]));
let turn: HostileTurn = "none";

const files = readdirSync(GOLDEN).filter((name) => name.endsWith(".http") && !name.endsWith(".req.http"));
const bodyOf = (name: string): Buffer => {
  const bytes = readFileSync(join(GOLDEN, name));
  return unchunked(bytes.subarray(bytes.indexOf("\r\n\r\n") + 4));
};
const pages = files.filter((name) => name.startsWith("metrics_")).map(bodyOf);
const streams = files.filter((name) => name.includes("_stream")).map(bodyOf);
const wholes = files
  .filter((name) => /^(?:chat|completions|messages|responses)/.test(name) && !name.includes("_stream"))
  .map(bodyOf);
const messages = ["reset_int", "bytes", "evict_int", "ranks_int", "lora_bytes"].flatMap((name) =>
  captured(name).map(({ payload }) => payload),
);
const eventShapes = Object.values(READERS["KV events"]!.shapes);

const publisher = new Publisher({ linger: 0, sendHighWaterMark: 16 });
await publisher.bind("tcp://127.0.0.1:*");

const server = createServer((request, response) => {
  request.resume();
  request.on("end", () => answer(request.url ?? "", response));
});
server.listen(0, "127.0.0.1", () => process.send!({ port: (server.address() as AddressInfo).port }));
process.on("message", (order: HostileTurn) => (turn = order));
process.on("disconnect", () => process.exit(0));
void publish();

function answer(url: string, response: ServerResponse): void {
  if (url === "/v1/models")
    return json(response, `{"object":"list","data":[{"id":"${HOSTILE_MODEL}","object":"model"}]}`);
  if (url === "/kv_event_sources") {
    const source = { enable_kv_cache_events: true, publisher: "zmq", topic: "", endpoint: publisher.lastEndpoint };
    return json(response, JSON.stringify({ "0": source }));
  }
  if (url === "/metrics") {
    const isHostile = turn === "metrics" || turn === "all";
    const page = isHostile ? drawn(pages, Object.values(METRIC_SHAPES), PAGE_BYTES_MAX) : pages[0]!;
    response.writeHead(200, { "content-type": "text/plain; version=1.0.0; charset=utf-8" }).end(page);
    return undefined;
  }
  if (url === "/health") return json(response, "");
  if (turn !== "answers" && turn !== "all") return json(response, wholes[0]!.toString());
  if (mutator.below(2) === 0)
    return inPieces(
      response,
      "text/event-stream; charset=utf-8",
      drawn(streams, Object.values(STREAM_SHAPES), ANSWER_BYTES_MAX),
    );
  const shapes = Object.values(READERS[mutator.of(["whole answer, chat", "whole answer, messages"])]!.shapes);
  return inPieces(response, "application/json", drawn(wholes, shapes, ANSWER_BYTES_MAX));
}

function json(response: ServerResponse, body: string): void {
  response.writeHead(200, { "content-type": "application/json" }).end(body);
}

/** By reads of some size, and now and then without an end. */
function inPieces(response: ServerResponse, type: string, body: Buffer): void {
  response.writeHead(mutator.below(20) === 0 ? mutator.of([201, 204, 400, 429, 500, 503]) : 200, {
    "content-type": type,
  });
  const pieceBytes = mutator.of([100, 1_400, 65_536, body.length + 1]);
  const ends = mutator.below(8) > 0;
  let at = 0;
  const next = (): void => {
    for (let pieces = 0; pieces < 64 && at < body.length; pieces++)
      response.write(body.subarray(at, (at += pieceBytes)));
    if (at < body.length && !response.destroyed) return void setImmediate(next);
    if (ends) response.end();
    else response.destroy();
  };
  next();
}

async function publish(): Promise<void> {
  const number = Buffer.alloc(8);
  for (let sent = 0; ;) {
    await sleep(EVENT_MILLIS);
    if (turn !== "events" && turn !== "all") continue;
    // Gaps, repetitions and steps back.
    sent = Math.max(0, sent + mutator.of([1, 1, 1, 1, 1, 1, 2, 0, -3, 1_000]));
    number.writeBigUInt64BE(BigInt(sent));
    const payload = drawn(messages, eventShapes, MESSAGE_BYTES_MAX);
    await publisher.send(mutator.below(50) === 0 ? [payload] : ["", Buffer.from(number), payload]).catch(() => {});
  }
}

/** A captured one, most often mutated; now and then one that is made to be dear. */
function drawn(all: readonly Buffer[], shapes: readonly Shape[], bytesMax: number): Buffer {
  const kind = mutator.below(10);
  if (kind === 0) return mutator.of(all);
  const bytes = kind < 8 ? mutator.of(all) : mutator.of(shapes)(mutator.of([2_000, 60_000, bytesMax / 2]));
  return mutator.mutated(bytes, mutator.of(all)).subarray(0, bytesMax);
}

/** Of a captured body in HTTP chunks. */
function unchunked(body: Buffer): Buffer {
  const chunks: Buffer[] = [];
  let at = 0;
  for (;;) {
    const end = body.indexOf("\r\n", at);
    const size = Number.parseInt(body.toString("latin1", at, Math.max(at, end)), 16);
    if (!(size > 0) || body.length < end + 2 + size || !/^[0-9a-f]+$/.test(body.toString("latin1", at, end))) break;
    chunks.push(body.subarray(end + 2, end + 2 + size));
    at = end + 2 + size + 2;
  }
  return chunks.length > 0 ? Buffer.concat(chunks) : body;
}
