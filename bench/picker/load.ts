/**
 * Child process: asks an endpoint picker as Envoy does, in full duplex: head and body of a chat, and, once it knows where that
 * goes, head and body of its answer. It reports to its parent how soon the request could have gone on to an engine.
 */
import { type ClientHttp2Session, type ClientHttp2Stream, connect } from "node:http2";
import { setTimeout as sleep } from "node:timers/promises";
import { MessageFrames } from "#picker/grpc/message-frames.ts";
import { MessageReader, tagOf, WITH_LENGTH } from "#picker/grpc/message-reader.ts";
import { DESTINATION } from "#picker/processing-response.ts";
import { PHASE, PROXY_CALL, proxiedBody, proxiedHeaders } from "#picker/proxy-messages.ts";
import { BODY_MODE, REPLY } from "#picker/wire.ts";
import { chatRequests } from "../chat-requests.ts";

/** What the parent asks for; `connect` is answered once the picker names an endpoint. */
export type PickerOrder =
  | { readonly kind: "connect"; readonly port: number; readonly tls: boolean; readonly bodyBytes: number }
  /** Each of so many at once begins as another one has ended. */
  | { readonly kind: "closed"; readonly count: number; readonly atOnce: number }
  /** Evenly spread, whether or not those before are over. */
  | { readonly kind: "open"; readonly count: number; readonly perSecond: number };

export interface PickerReport {
  /** Ended in another way than with an endpoint and the whole answer. */
  readonly failures: number;
  readonly millis: number;
  /** From when a question was due until its request could go on. */
  readonly p50Millis: number;
  readonly p99Millis: number;
}

/** As many as Envoy has worker threads, each with a connection of its own. */
const CONNECTIONS = 4;
const START_MILLIS_MAX = 60_000;
const HEADERS = {
  ":method": "POST",
  ":path": "/v1/chat/completions",
  ":authority": "bench",
  "content-type": "application/json",
  "user-agent": "bench",
  accept: "*/*",
  authorization: "Bearer sk-bench",
};
const ANSWER_HEAD = proxiedHeaders(PHASE.responseHeaders, {
  ":status": "200",
  "content-type": "application/json",
  server: "uvicorn",
});
const ANSWER_BODY = proxiedBody(
  PHASE.responseBody,
  Buffer.from(
    `{"id":"chatcmpl-1","object":"chat.completion","created":1,"model":"tiny","choices":[{"index":0,"message":{"role":"assistant","content":"${"word ".repeat(45)}"},"logprobs":null,"finish_reason":"stop","stop_reason":null}],"usage":{"prompt_tokens":400,"total_tokens":410,"completion_tokens":10,"prompt_tokens_details":null}}`,
  ),
);
const KINDS: ReadonlyMap<number, number> = new Map(
  Object.values(REPLY).map((kind) => [tagOf(kind, WITH_LENGTH), kind]),
);

let sessions: readonly ClientHttp2Session[] = [];
let nextBody: () => Buffer = () => Buffer.alloc(0);
let asked = 0;

/** Which of the answers it is. */
function kindOf(message: Buffer): number | undefined {
  const reader = new MessageReader(message);
  while (reader.next()) {
    const kind = KINDS.get(reader.tag);
    if (kind !== undefined) return kind;
    reader.skip();
  }
  return undefined;
}

/** Calls back with when the request could go on; resolves with whether all went well. */
function ask(session: ClientHttp2Session, goesOn: (at: number) => void): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const call: ClientHttp2Stream = session.request(PROXY_CALL);
  const frames = new MessageFrames(Infinity);
  let isPlaced = false;
  let isWhole = false;
  call.on("data", (piece: Buffer) =>
    frames.push(piece, (message) => {
      const kind = kindOf(message);
      if (kind === REPLY.requestHeaders) isPlaced = message.includes(DESTINATION);
      else if (kind === REPLY.requestBody) {
        goesOn(performance.now());
        call.write(ANSWER_HEAD);
        call.write(ANSWER_BODY);
      } else if (kind === REPLY.responseBody || kind === REPLY.immediate) {
        isWhole = kind === REPLY.responseBody;
        call.end();
      }
    }),
  );
  call.on("error", () => {});
  call.on("close", () => resolve(isPlaced && isWhole));
  const headers = { ...HEADERS, "x-request-id": `bench-${asked++}` };
  call.write(proxiedHeaders(PHASE.requestHeaders, headers, BODY_MODE.fullDuplexStreamed));
  call.write(proxiedBody(PHASE.requestBody, nextBody()));
  return promise;
}

class Tally {
  readonly #millis: number[] = [];
  readonly #began = performance.now();
  #failures = 0;

  async ask(dueMillis: number): Promise<void> {
    const session = sessions[asked % CONNECTIONS]!;
    if (!(await ask(session, (at) => this.#millis.push(at - dueMillis)))) this.#failures++;
  }

  report(): PickerReport {
    const sorted = this.#millis.toSorted((a, b) => a - b);
    const at = (share: number): number => sorted[Math.ceil(share * sorted.length) - 1] ?? Number.NaN;
    const millis = performance.now() - this.#began;
    return { failures: this.#failures, millis, p50Millis: at(0.5), p99Millis: at(0.99) };
  }
}

/** Also false where its connection is gone. */
async function isAnswered(session: ClientHttp2Session): Promise<boolean> {
  try {
    return await ask(session, () => {});
  } catch {
    return false;
  }
}

async function connectTo(port: number, tls: boolean): Promise<void> {
  const began = performance.now();
  for (const session of sessions) session.destroy();
  for (;;) {
    const url = `${tls ? "https" : "http"}://127.0.0.1:${port}`;
    // Pickers sign their own certificates, and gateways do not ask who answers.
    sessions = Array.from({ length: CONNECTIONS }, () => connect(url, { rejectUnauthorized: false }));
    for (const session of sessions) session.on("error", () => {});
    const answers = await Promise.all(sessions.map(isAnswered));
    if (answers.every(Boolean)) return;
    for (const session of sessions) session.destroy();
    if (performance.now() - began > START_MILLIS_MAX) throw new Error(`no picker answers on port ${port}`);
    await sleep(100);
  }
}

async function closed(count: number, atOnce: number): Promise<PickerReport> {
  const tally = new Tally();
  let left = count;
  const one = async (): Promise<void> => {
    while (left-- > 0) await tally.ask(performance.now());
  };
  await Promise.all(Array.from({ length: atOnce }, one));
  return tally.report();
}

async function open(count: number, perSecond: number): Promise<PickerReport> {
  const tally = new Tally();
  const began = performance.now();
  const all: Promise<void>[] = [];
  while (all.length < count) {
    const due = ((performance.now() - began) / 1e3) * perSecond;
    while (all.length < Math.min(due, count)) all.push(tally.ask(began + (all.length / perSecond) * 1e3));
    await sleep(1);
  }
  await Promise.all(all);
  return tally.report();
}

async function carryOut(order: PickerOrder): Promise<unknown> {
  if (order.kind === "closed") return closed(order.count, order.atOnce);
  if (order.kind === "open") return open(order.count, order.perSecond);
  const requests = chatRequests({ bodyBytes: order.bodyBytes, stream: false });
  nextBody = () => {
    const request = requests();
    return request.subarray(request.indexOf("\r\n\r\n") + 4);
  };
  await connectTo(order.port, order.tls);
  return { ready: true };
}

process.on("message", (order: PickerOrder) => {
  void carryOut(order).then((report) => process.send!(report));
});
process.on("disconnect", () => process.exit(0));
process.send!({ ready: true });
