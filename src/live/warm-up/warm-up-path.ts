import { type IncomingMessage, type ServerResponse, createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { Pool } from "undici";
import { nowMicros } from "../base/clock.ts";
import { EndpointDirectory } from "../endpoints/endpoint-directory.ts";
import { type GatewayOptions, createGateway } from "../gateway/gateway.ts";
import type { Intake } from "../base/intake.ts";
import { joinMadeUp, MADE_UP_MODEL as MODEL } from "./made-up-endpoint.ts";
import { EVENTS, madeUpBody, SILENT, withoutLearning } from "./made-up-request.ts";

type Shared = "identity" | "tokenizer" | "limits" | "requestUsage" | "stages";

export interface PathWarmUpOptions extends Pick<GatewayOptions, Shared> {
  /** Around a router of its own without endpoints, thrown away afterwards. */
  readonly intake: Intake;
  readonly requests?: number;
  readonly budgetMillis?: number;
  /** Called once, and waited for, at the end, while one request that streams and one that does not are under way. */
  readonly whileUnderWay?: () => unknown;
}

const IN_FLIGHT = 16;

/**
 * Sends made-up requests through a gateway of its own to an engine of its own, both on loopback and gone afterwards, so
 * that the first real requests meet compiled code from socket to socket. Resolves with the number of requests answered.
 */
export async function warmUpPath(options: PathWarmUpOptions): Promise<number> {
  const { intake, requests = 3_000, budgetMillis = 1_500, whileUnderWay, ...shared } = options;
  const held = new HeldAnswers();
  const engine = createServer((incoming, outgoing) => answer(incoming, outgoing, held));
  await new Promise<void>((resolve) => engine.listen(0, "127.0.0.1", resolve));
  const url = `http://127.0.0.1:${(engine.address() as AddressInfo).port}`;
  const directory = new EndpointDirectory();
  joinMadeUp(url, nowMicros(), intake, directory);
  const tokenizer = (model: string) => withoutLearning(shared.tokenizer(model));
  const gateway = createGateway({ ...shared, tokenizer, intake, directory, observe: SILENT });
  const pool = new Pool((await gateway.listen("127.0.0.1", 0)).url, { connections: IN_FLIGHT });
  const until = performance.now() + budgetMillis;
  let sent = 0;
  const client = async (): Promise<void> => {
    while (sent < requests && performance.now() < until) await ask(pool, sent++);
  };
  // Without sockets to spare it is a shorter warm-up, and no reason not to start.
  const failed = await Promise.allSettled(Array.from({ length: IN_FLIGHT }, client));
  const answered = sent - failed.filter(({ status }) => status === "rejected").length;
  if (whileUnderWay !== undefined) await underWay(pool, held, whileUnderWay);
  await pool.destroy();
  await gateway.close(0);
  engine.closeAllConnections();
  await new Promise((resolve) => engine.close(resolve));
  return answered;
}

async function ask(pool: Pool, n: number): Promise<void> {
  const { body } = await pool.request({
    path: "/v1/chat/completions",
    method: "POST",
    headers: { "content-type": "application/json" },
    body: madeUpBody(n),
  });
  await body.dump();
}

/** Where no request gets through it is called all the same. */
async function underWay(pool: Pool, held: HeldAnswers, call: () => unknown): Promise<void> {
  const bothWait = held.hold(2);
  const asked = [ask(pool, STREAMED), ask(pool, STREAMED + 1)].map((asking) => asking.catch(() => {}));
  await Promise.race([bothWait, ...asked]);
  // The beginning of the stream is on its way to the client.
  for (let turn = 0; turn < 3; turn++) await new Promise((resolve) => void setImmediate(resolve));
  await call();
  held.release();
  await Promise.all(asked);
}

/** Of the made-up requests, one that is streamed, and whose successor is not. */
const STREAMED = 0;

const USAGE = { prompt_tokens: 100, total_tokens: 120, completion_tokens: EVENTS };
const WHOLE = JSON.stringify({
  id: "chatcmpl-1",
  object: "chat.completion",
  model: MODEL,
  choices: [{ index: 0, message: { role: "assistant", content: "made up" }, logprobs: null, finish_reason: "stop" }],
  usage: USAGE,
});
const HEAD =
  'data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"warm-up","choices":[{"index":0,';
const ROLE = `${HEAD}"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}],"prompt_token_ids":[1,2],"prompt_text":null}\n\n`;
const EVENT = `${HEAD}"delta":{"content":"x"},"logprobs":null,"finish_reason":null,"token_ids":[128]}]}\n\n`;

function answer(incoming: IncomingMessage, outgoing: ServerResponse, held: HeldAnswers): void {
  let streams = false;
  incoming.on("data", (chunk: Buffer) => (streams ||= chunk.includes('"stream":true')));
  incoming.on("end", () => {
    const whole = (): void => void outgoing.writeHead(200, { "content-type": "application/json" }).end(WHOLE);
    if (!streams) return held.pass(whole);
    outgoing.writeHead(200, { "content-type": "text/event-stream; charset=utf-8" });
    outgoing.write(ROLE);
    let left = EVENTS;
    const next = (): void => {
      if (outgoing.destroyed) return;
      if (left-- === 0) return void outgoing.end("data: [DONE]\n\n");
      outgoing.write(EVENT);
      setImmediate(next);
    };
    held.pass(next);
  });
}

/** Answers of a made-up engine that wait halfway until they are let go, so that something can be done meanwhile. */
class HeldAnswers {
  readonly #goOn: (() => void)[] = [];
  #wanted = 0;
  #reached: (() => void) | undefined;

  /** The next `count` answers wait; resolves once all of them do. */
  hold(count: number): Promise<void> {
    this.#wanted = count;
    return new Promise((resolve) => (this.#reached = resolve));
  }

  /** Goes on with an answer: at once, or later where it is to wait. */
  pass(goOn: () => void): void {
    if (this.#goOn.length === this.#wanted) return goOn();
    this.#goOn.push(goOn);
    if (this.#goOn.length === this.#wanted) this.#reached?.();
  }

  /** Lets all go on. */
  release(): void {
    this.#wanted = 0;
    for (const goOn of this.#goOn.splice(0)) goOn();
  }
}
