/**
 * What the gateway's own code takes of a streamed event, without the kernel and Node: from the read at the engine's socket
 * to the write at the client's, with its chunk leaving as it came and with its payload read on its own.
 *
 *     npx node bench/event-reading.ts
 *
 * Nanoseconds, the least of many short turns, and bytes allocated; so it holds on a machine with other work.
 */
import { Writable } from "node:stream";
import { getHeapStatistics } from "node:v8";
import type { Delivery } from "#live/answer/answer.ts";
import { framed } from "#live/answer/client-writer.ts";
import { StreamAnswer } from "#live/answer/stream-answer.ts";
import { writeCopied } from "#live/answer/write-copied.ts";
import type { ContinuationPlan } from "#live/continuation/continuation-plan.ts";
import { KeptStream } from "#live/continuation/kept-stream.ts";
import { READ_SLAB } from "#live/upstream/read-slab.ts";
import { UpstreamReads } from "#live/upstream/upstream-reads.ts";

const TURNS = 600;
const EVENTS = 500;
const SENDER = '"id":"chatcmpl-ab4a080792c17ef2","object":"chat.completion.chunk","created":1795219500,"model":"tiny"';
const FIRST = `data: {${SENDER},"choices":[{"index":0,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}],"prompt_token_ids":[1,2,3],"prompt_text":null}\n\n`;
const EVENT = `data: {${SENDER},"choices":[{"index":0,"delta":{"content":" word"},"logprobs":null,"finish_reason":null,"token_ids":[103492]}]}\n\n`;
const HEAD = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";

for (const keeps of [true, false]) {
  for (const takesChunks of [true, false]) {
    const { nanos, bytes } = measured(keeps, takesChunks);
    const name = `${takesChunks ? "chunks as they came" : "payload on its own"}, ${keeps ? "ids kept" : "nothing kept"}`;
    console.log(`${name.padEnd(40)}${nanos.toFixed(0).padStart(6)} ns${bytes.toFixed(0).padStart(7)} bytes`);
  }
}

function measured(keeps: boolean, takesChunks: boolean): { readonly nanos: number; readonly bytes: number } {
  const answer = new StreamAnswer(deliveryOf(keeps, takesChunks), { status: 200, headers: {} });
  const reads = new UpstreamReads();
  const socket = { readableLength: 0, destroyed: false, push: () => true };
  const arrives = (text: Buffer): void => {
    text.copy(READ_SLAB.read);
    (reads.onread.callback as (this: object, bytes: number) => boolean).call(socket, text.length);
  };
  reads.begin();
  arrives(Buffer.concat([Buffer.from(HEAD), framed(Buffer.from(FIRST))]));
  reads.follow({
    piece: (bytes) => answer.data(bytes),
    chunks: (bytes, to) => answer.chunks(bytes, to),
  });
  answer.data(Buffer.from(FIRST));
  const event = framed(Buffer.from(EVENT));
  let nanos = Infinity;
  let allocated = 0;
  for (let turn = 0; turn < TURNS; turn++) {
    const before = getHeapStatistics().total_allocated_bytes;
    const start = process.hrtime.bigint();
    for (let i = 0; i < EVENTS; i++) arrives(event);
    nanos = Math.min(nanos, Number(process.hrtime.bigint() - start) / EVENTS);
    allocated = (getHeapStatistics().total_allocated_bytes - before) / EVENTS;
  }
  return { nanos, bytes: allocated };
}

function deliveryOf(keeps: boolean, takesChunks: boolean): Delivery {
  const sink = new Writable({ write: (_chunk, _encoding, done) => done() });
  const plan = { dialect: "chat", stops: [], includesStop: false, showsIds: false, greedy: false };
  const kept = keeps
    ? new KeptStream({
        plan: plan as unknown as ContinuationPlan,
        byText: undefined,
        end: undefined,
        tokensMax: 1 << 20,
        hold: () => true,
      })
    : undefined;
  const delivery = {
    kept,
    dialect: "chat",
    stage: "passing",
    limits: { eventBytesInspected: 65_536, holdBytesMax: 1 << 20 },
    counters: { uninspected: 0 },
    get takesChunks() {
      return takesChunks && kept?.readsTokens !== false;
    },
    write: (piece: Buffer) => void sink.write(framed(piece)),
    writeChunks: (bytes: Buffer, length: number) => void writeCopied(sink, bytes, length),
    firstToken: () => {},
    progress: () => {},
  };
  return delivery as unknown as Delivery;
}
