import { type ClientHttp2Session, type ClientHttp2Stream, connect, constants } from "node:http2";
import { MICROS_PER_MILLI } from "#core/base/units.ts";
import { nowMicros } from "#live/base/clock.ts";
import type { Intake } from "#live/base/intake.ts";
import { EndpointDirectory } from "#live/endpoints/endpoint-directory.ts";
import { createGateway, type GatewayOptions } from "#live/gateway/gateway.ts";
import { joinMadeUp, MADE_UP_MODEL } from "#live/warm-up/made-up-endpoint.ts";
import { madeUpBody, SILENT, withoutLearning } from "#live/warm-up/made-up-request.ts";
import { MessageFrames } from "./grpc/message-frames.ts";
import { PICKER_RULES } from "./picker-rules.ts";
import { startPicker } from "./picker-server.ts";
import { PHASE, PROXY_CALL, proxiedBody, proxiedHeaders } from "./proxy-messages.ts";
import { selfSigned } from "./self-signed.ts";
import { BODY_MODE } from "./wire.ts";

interface PickerWarmUpOptions extends Pick<GatewayOptions, "identity" | "tokenizer" | "stages"> {
  /** Around a router of its own without endpoints, thrown away afterwards. */
  readonly intake: Intake;
  readonly requests?: number;
  readonly budgetMillis: number;
  /** As the picker itself is asked. */
  readonly tls?: boolean;
  /** Called once, at the end, while requests of each kind are under way. */
  readonly whileUnderWay?: () => void;
}

/** More than a table has room for at first, so that code meets tables that have grown. */
const IN_FLIGHT = 40;
const CLOCK_FACTOR = 4;
/** Several, so that there is a choice. No engine is asked: the proxy would do that. */
const ENGINES = [1, 2, 3, 4].map((i) => `http://127.0.0.${i}:9`);

/**
 * Asks a picker of its own, as a proxy does on loopback, about made-up requests, so that the first real ones meet
 * compiled code. Resolves with the number of those that it answered.
 */
export async function warmUpPicker(options: PickerWarmUpOptions): Promise<number> {
  const { intake, requests = 3_000, budgetMillis, tls = false, whileUnderWay, ...shared } = options;
  const directory = new EndpointDirectory();
  for (const engine of ENGINES) joinMadeUp(engine, nowMicros(), intake, directory);
  const tokenizer = (model: string) => withoutLearning(shared.tokenizer(model));
  const gateway = createGateway({ ...shared, tokenizer, intake, directory, observe: SILENT });
  const certificate = tls ? selfSigned("gnomon", new Date()) : undefined;
  const picker = await startPicker({
    gateway: gateway.shared,
    routes: gateway.routes,
    host: "127.0.0.1",
    port: 0,
    healthPort: undefined,
    tls: certificate && { context: certificate, listen: () => {} },
    fallbacksMax: 0,
    rules: PICKER_RULES,
    ready: () => true,
  });
  const url = `${tls ? "https" : "http"}://127.0.0.1:${picker.port}`;
  const session = connect(url, certificate && { ca: certificate.cert, servername: "gnomon" });
  // Its streams fail by it, each.
  session.on("error", () => {});
  const hasTime = budgetOf(budgetMillis);
  let sent = 0;
  const proxy = async (): Promise<void> => {
    while (sent < requests && hasTime()) await exchange(session, sent++);
  };
  const failed = await Promise.allSettled(Array.from({ length: IN_FLIGHT }, proxy));
  if (whileUnderWay !== undefined) await underWay(session, whileUnderWay);
  session.close();
  await picker.stop(0);
  await gateway.close(0);
  return sent - failed.filter(({ status }) => status === "rejected").length;
}

/** Where no request gets through it is called all the same. */
async function underWay(session: ClientHttp2Session, call: () => void): Promise<void> {
  const goOn = Promise.withResolvers<void>();
  const reached: Promise<void>[] = [];
  const asked = Array.from({ length: KINDS }, (_, n) => {
    const here = Promise.withResolvers<void>();
    reached.push(here.promise);
    return exchange(session, n, () => (here.resolve(), goOn.promise)).catch(() => here.resolve());
  });
  await Promise.all(reached);
  call();
  goOn.resolve();
  await Promise.all(asked);
}

/**
 * By this thread's own CPU, so that a machine that is busy with others does not leave the first requests to code that is not
 * compiled; a multiple of it by the clock, so that the start is bounded there too.
 */
function budgetOf(budgetMillis: number): () => boolean {
  const { user, system } = process.threadCpuUsage();
  const until = performance.now() + CLOCK_FACTOR * budgetMillis;
  return () => {
    const now = process.threadCpuUsage();
    const usedMillis = (now.user + now.system - user - system) / MICROS_PER_MILLI;
    return usedMillis < budgetMillis && performance.now() < until;
  };
}

/**
 * A request and its answer, as Envoy passes them by: every fourth as proxies do that wait for whole bodies, every fourth
 * streamed, and the client's end is the stream's or, as Envoy's, a reset. `halfway` is waited for between the two.
 */
function exchange(session: ClientHttp2Session, n: number, halfway?: () => Promise<void>): Promise<void> {
  const mode = n % 4 === 3 ? BODY_MODE.buffered : BODY_MODE.fullDuplexStreamed;
  const isPlain = n % 4 === 1;
  const answer = n % 4 === 0 ? STREAMED : WHOLE;
  const resets = n % 8 >= 4;
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const call = session.request(PROXY_CALL);
  const frames = new MessageFrames(Infinity);
  let messages = 0;
  const isWhole = (): boolean => messages >= REQUEST_MESSAGES + answer.length;
  call.on("data", (piece: Buffer) => {
    frames.push(piece, () => {
      messages++;
      if (messages === REQUEST_MESSAGES) void answered(call, answer, halfway);
      else if (!isWhole()) return;
      else if (resets) call.close(constants.NGHTTP2_CANCEL);
      else call.end();
    });
  });
  call.on("error", reject);
  call.on("end", () => {
    if (!isWhole()) call.close(constants.NGHTTP2_CANCEL);
  });
  call.on("close", () => (isWhole() ? resolve() : reject(new Error("the picker ended the stream"))));
  const headers = n % 16 === 0 ? REQUEST : { ...REQUEST, "x-request-id": `warm-up-${n}` };
  const path = isPlain ? "/v1/completions" : "/v1/chat/completions";
  call.write(proxiedHeaders(PHASE.requestHeaders, { ...headers, ":path": path }, mode));
  call.write(proxiedBody(PHASE.requestBody, Buffer.from(isPlain ? plainBody(n) : madeUpBody(n))));
  return promise;
}

/** After how many requests their kinds come again. */
const KINDS = 16;
/** To a head and to a body. */
const REQUEST_MESSAGES = 2;
const REQUEST = {
  ":method": "POST",
  ":scheme": "http",
  ":authority": "warm-up",
  "content-type": "application/json",
  "user-agent": "warm-up",
  accept: "*/*",
  authorization: "Bearer warm-up",
};
const ABOUT = { id: "chatcmpl-1", object: "chat.completion", created: 1, model: MADE_UP_MODEL };
const USAGE = { prompt_tokens: 100, total_tokens: 120, completion_tokens: 20, prompt_tokens_details: null };
/** An answer's messages, each of which gets one back. */
const WHOLE = [
  proxiedHeaders(PHASE.responseHeaders, { ":status": "200", "content-type": "application/json", server: "uvicorn" }),
  proxiedBody(
    PHASE.responseBody,
    Buffer.from(
      JSON.stringify({
        ...ABOUT,
        choices: [{ index: 0, message: { role: "assistant", content: "made up" }, finish_reason: "stop" }],
        usage: USAGE,
      }),
    ),
  ),
];
const EVENT = { ...ABOUT, choices: [{ index: 0, delta: { content: " made" }, finish_reason: null }] };
const LAST_EVENT = { ...ABOUT, choices: [{ index: 0, delta: {}, finish_reason: "stop" }], usage: USAGE };
const STREAMED = [
  proxiedHeaders(PHASE.responseHeaders, { ":status": "200", "content-type": "text/event-stream; charset=utf-8" }),
  ...[EVENT, EVENT, LAST_EVENT].map((event) =>
    proxiedBody(PHASE.responseBody, Buffer.from(`data: ${JSON.stringify(event)}\n\n`), false),
  ),
  proxiedBody(PHASE.responseBody, Buffer.from("data: [DONE]\n\n")),
];

/** Of a prompt that others have the beginning of. */
function plainBody(n: number): string {
  const prompt = `${n % 7} ${"made up for the warm-up ".repeat(40)}${n} ${"and an end of its own ".repeat(10)}`;
  return JSON.stringify({ model: MADE_UP_MODEL, prompt, max_tokens: 20 });
}

async function answered(
  call: ClientHttp2Stream,
  answer: readonly Buffer[],
  halfway?: () => Promise<void>,
): Promise<void> {
  if (halfway !== undefined) await halfway();
  for (const message of answer) call.write(message);
}
