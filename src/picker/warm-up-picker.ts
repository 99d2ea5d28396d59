import { type ClientHttp2Session, type ClientHttp2Stream, connect } from "node:http2";
import { MICROS_PER_MILLI } from "#core/base/units.ts";
import { nowMicros } from "#live/base/clock.ts";
import type { RouterTap } from "#live/base/router-tap.ts";
import { EndpointDirectory } from "#live/endpoints/endpoint-directory.ts";
import { createGateway, type GatewayOptions } from "#live/gateway/gateway.ts";
import { joinMadeUp, MADE_UP_MODEL } from "#live/warm-up/made-up-endpoint.ts";
import { madeUpBody, SILENT, withoutLearning } from "#live/warm-up/made-up-request.ts";
import { MessageFrames } from "./grpc/message-frames.ts";
import { PICKER_RULES } from "./picker-rules.ts";
import { startPicker } from "./picker-server.ts";
import { PHASE, PROXY_CALL, proxiedBody, proxiedHeaders } from "./proxy-messages.ts";
import { BODY_MODE } from "./wire.ts";

interface PickerWarmUpOptions extends Pick<GatewayOptions, "identity" | "tokenizer" | "stages"> {
  /** Around a router of its own without endpoints, thrown away afterwards. */
  readonly tap: RouterTap;
  readonly requests?: number;
  readonly budgetMillis: number;
}

const IN_FLIGHT = 16;
const CLOCK_FACTOR = 4;
/** No engine is asked: the proxy would do that. */
const ENGINE = "http://127.0.0.1:9";

/**
 * Asks a picker of its own, as a proxy does on loopback, about made-up requests, so that the first real ones meet
 * compiled code. Resolves with the number of those that it answered.
 */
export async function warmUpPicker(options: PickerWarmUpOptions): Promise<number> {
  const { tap, requests = 3_000, budgetMillis, ...shared } = options;
  const directory = new EndpointDirectory();
  joinMadeUp(ENGINE, nowMicros(), tap, directory);
  const tokenizer = (model: string) => withoutLearning(shared.tokenizer(model));
  const gateway = createGateway({ ...shared, tokenizer, tap, directory, observe: SILENT });
  const picker = await startPicker({
    gateway: gateway.parts,
    routes: gateway.routes,
    host: "127.0.0.1",
    port: 0,
    healthPort: undefined,
    tls: undefined,
    fallbacksMax: 0,
    rules: PICKER_RULES,
    ready: () => true,
  });
  const session = connect(`http://127.0.0.1:${picker.port}`);
  // Its streams fail by it, each.
  session.on("error", () => {});
  const hasTime = budgetOf(budgetMillis);
  let sent = 0;
  const proxy = async (): Promise<void> => {
    while (sent < requests && hasTime()) await exchange(session, sent++);
  };
  const failed = await Promise.allSettled(Array.from({ length: IN_FLIGHT }, proxy));
  session.close();
  await picker.stop(0);
  await gateway.close(0);
  return sent - failed.filter(({ status }) => status === "rejected").length;
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

/** A request and its answer, as Envoy passes them by; every fourth as proxies do that wait for whole bodies. */
function exchange(session: ClientHttp2Session, n: number): Promise<void> {
  const mode = n % 4 === 3 ? BODY_MODE.buffered : BODY_MODE.fullDuplexStreamed;
  const isPlain = n % 4 === 1;
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const call = session.request(PROXY_CALL);
  const frames = new MessageFrames(Infinity);
  let messages = 0;
  call.on("data", (piece: Buffer) => {
    frames.push(piece, () => {
      messages++;
      if (messages === REQUEST_MESSAGES) answered(call);
      else if (messages === ALL_MESSAGES) call.end();
    });
  });
  call.on("error", reject);
  call.on("end", () => (messages >= ALL_MESSAGES ? resolve() : reject(new Error("the picker ended the stream"))));
  call.write(proxiedHeaders(PHASE.requestHeaders, isPlain ? PLAIN_REQUEST : CHAT_REQUEST, mode));
  call.write(proxiedBody(PHASE.requestBody, Buffer.from(isPlain ? plainBody(n) : madeUpBody(n))));
  return promise;
}

/** To a head and to a body. */
const REQUEST_MESSAGES = 2;
const ALL_MESSAGES = 4;
const REQUEST = { ":method": "POST", "content-type": "application/json" };
const CHAT_REQUEST = { ...REQUEST, ":path": "/v1/chat/completions" };
const PLAIN_REQUEST = { ...REQUEST, ":path": "/v1/completions" };
const RESPONSE = { ":status": "200", "content-type": "application/json" };
const ANSWER = Buffer.from(
  JSON.stringify({
    choices: [{ index: 0, message: { role: "assistant", content: "made up" }, finish_reason: "stop" }],
    usage: { prompt_tokens: 100, total_tokens: 120, completion_tokens: 20 },
  }),
);

/** Of a prompt that others have the beginning of. */
function plainBody(n: number): string {
  const prompt = `${n % 7} ${"made up for the warm-up ".repeat(40)}${n} ${"and an end of its own ".repeat(10)}`;
  return JSON.stringify({ model: MADE_UP_MODEL, prompt, max_tokens: 20 });
}

function answered(call: ClientHttp2Stream): void {
  call.write(proxiedHeaders(PHASE.responseHeaders, RESPONSE));
  call.write(proxiedBody(PHASE.responseBody, ANSWER));
}
