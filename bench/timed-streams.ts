/**
 * Child process: engines and clients of many streams on one clock. Each event carries the time at which its engine sent it,
 * so that its client knows how long it took. Its parent orders streams, which last for a time, and gets what they met.
 */
import { type AddressInfo, type Socket, connect, createServer } from "node:net";

export interface TimedOrder {
  readonly port: number;
  readonly streams: number;
  /** Between two events of a stream. */
  readonly gapMillis: number;
  readonly millis: number;
}

export interface TimedReport {
  readonly events: number;
  readonly whole: number;
  /** Reads of clients that came less than a millisecond after one of the same stream: what could have been one write. */
  readonly closeReads: number;
  readonly reads: number;
  /** From engine to client, sorted. */
  readonly delayMicros: { readonly p50: number; readonly p99: number };
  /** By how much two events lay further apart at the client than at the engine. */
  readonly addedGapMicros: { readonly p50: number; readonly p99: number };
}

const HEAD =
  "HTTP/1.1 200 OK\r\nserver: uvicorn\r\ncontent-type: text/event-stream; charset=utf-8\r\ntransfer-encoding: chunked\r\n\r\n";
const MODELS = '{"object":"list","data":[{"id":"tiny","object":"model","max_model_len":131072}]}';
const START =
  'data: {"id":"chatcmpl-ab4a080792c17ef2","object":"chat.completion.chunk","created":1795219500,"model":"tiny","choices":[{"index":0,';
const PROMPT_IDS = chunk(
  `${START}"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}],"prompt_token_ids":[1,2,3],"prompt_text":null}\n\n`,
);
const DONE = `${chunk("data: [DONE]\n\n")}0\r\n\r\n`;
const TURNS_AT_ONCE = 3;
const CLOSE_MICROS = 1_000;
const SAMPLES_MAX = 2_000_000;

let measure = (): void => {};
let ending = (): void => {};
let gapMillis = 100;
let endsAt = 0;
/** Streams by the millisecond of the gap in which they are due. */
let turns: Socket[][] = [];
let at = 0;
let last = performance.now();

setInterval(() => {
  const now = performance.now();
  // What this process was late for is left out: made up for, it would be hundreds of events at once for the gateway.
  last = Math.max(last, now - TURNS_AT_ONCE);
  for (; last + 1 <= now; last++) {
    if (turns.length === 0) continue;
    at = (at + 1) % turns.length;
    turns[at] = turns[at]!.filter((socket) => sendNext(socket, now));
  }
}, 1);

function sendNext(socket: Socket, now: number): boolean {
  if (!socket.writable) return false;
  if (now > endsAt) {
    socket.write(DONE);
    return false;
  }
  const time = Math.round(performance.now() * 1_000);
  socket.write(
    chunk(`${START}"delta":{"content":"t${time}."},"logprobs":null,"finish_reason":null,"token_ids":[103492]}]}\n\n`),
  );
  return true;
}

function chunk(text: string): string {
  return `${text.length.toString(16)}\r\n${text}\r\n`;
}

function serve(socket: Socket): void {
  let text = "";
  socket.setNoDelay(true);
  socket.on("error", () => {});
  socket.on("data", (data) => {
    text += data.toString("latin1");
    if (!text.startsWith("GET ") && !text.trimEnd().endsWith("}")) return;
    const streams = text.startsWith("POST ");
    text = "";
    if (!streams) {
      socket.write(
        `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ${MODELS.length}\r\n\r\n${MODELS}`,
      );
      return;
    }
    socket.write(HEAD + PROMPT_IDS);
    turns[Math.floor(Math.random() * turns.length)]!.push(socket);
  });
}

const BODY = JSON.stringify({ model: "tiny", messages: [{ role: "user", content: "a stream" }], stream: true });
const REQUEST = `POST /v1/chat/completions HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\ncontent-length: ${BODY.length}\r\n\r\n${BODY}`;

class Meters {
  events = 0;
  whole = 0;
  begun = 0;
  reads = 0;
  closeReads = 0;
  readonly delays: number[] = [];
  readonly gaps: number[] = [];
}

function stream(port: number, meters: Meters): Promise<void> {
  const socket = connect(port, "127.0.0.1");
  socket.setNoDelay(true);
  socket.write(REQUEST);
  let before = Number.NaN;
  let readAt = Number.NaN;
  return new Promise((resolve) => {
    socket.on("data", (data) => {
      const now = performance.now() * 1_000;
      const text = data.toString("latin1");
      if (Number.isNaN(readAt)) meters.begun++;
      meters.reads++;
      if (now - readAt < CLOSE_MICROS) meters.closeReads++;
      readAt = now;
      for (let from = text.indexOf('"content":"t'); from >= 0; from = text.indexOf('"content":"t', from + 1)) {
        meters.events++;
        const delay = now - Number.parseInt(text.slice(from + 12, from + 32), 10);
        if (meters.delays.length < SAMPLES_MAX) {
          meters.delays.push(delay);
          if (!Number.isNaN(before)) meters.gaps.push(delay - before);
        }
        before = delay;
      }
      if (!text.includes("[DONE]")) return;
      meters.whole++;
      socket.end();
    });
    socket.on("error", () => {});
    socket.on("close", () => resolve());
  });
}

async function run(order: TimedOrder): Promise<TimedReport> {
  ({ gapMillis } = order);
  turns = Array.from({ length: gapMillis }, () => []);
  endsAt = Infinity;
  const meters = new Meters();
  const all: Promise<void>[] = [];
  for (let i = 0; i < order.streams; i++) {
    all.push(stream(order.port, meters));
    if (i % STREAMS_PER_MILLI === 0) await new Promise((next) => setTimeout(next, 1));
  }
  // What is measured begins when all are there, or as many as come.
  const until = performance.now() + BEGIN_MILLIS_MAX;
  while (meters.begun < order.streams && performance.now() < until) await new Promise((next) => setTimeout(next, 50));
  await new Promise((next) => setTimeout(next, SETTLE_MILLIS));
  const asked = new Promise<void>((next) => (measure = next));
  process.send!({ kind: "held" });
  await asked;
  Object.assign(meters, { events: 0, reads: 0, closeReads: 0 });
  meters.delays.length = 0;
  meters.gaps.length = 0;
  await new Promise((next) => setTimeout(next, order.millis));
  const { events, reads, closeReads } = meters;
  const [delays, gaps] = [meters.delays.slice(), meters.gaps.slice()];
  process.send!({ kind: "measured" });
  // The end of all streams at once is no part of what is measured: the parent first takes what it needs.
  await new Promise<void>((next) => (ending = next));
  endsAt = 0;
  await Promise.all(all);
  const [delayMicros, addedGapMicros] = [quantiles(delays), quantiles(gaps)];
  return { events, reads, closeReads, delayMicros, addedGapMicros, whole: meters.whole };
}

const STREAMS_PER_MILLI = 4;
const SETTLE_MILLIS = 2_000;
const BEGIN_MILLIS_MAX = 30_000;

function quantiles(all: readonly number[]): { readonly p50: number; readonly p99: number } {
  const sorted = Float64Array.from(all).sort();
  const of = (share: number): number => sorted[Math.floor(share * (sorted.length - 1))] ?? Number.NaN;
  return { p50: of(0.5), p99: of(0.99) };
}

process.on("message", (order: TimedOrder | "measure" | "end") => {
  if (order === "measure") return measure();
  if (order === "end") return ending();
  void run(order).then((report) => process.send!({ kind: "report", report }));
});
process.on("disconnect", () => process.exit(0));
const server = createServer(serve).listen({ port: 0, host: "127.0.0.1", backlog: 4_096 }, () => {
  process.send!({ port: (server.address() as AddressInfo).port });
});
