import { type IncomingMessage, type ServerResponse, createServer } from "node:http";
import type { AddressInfo } from "node:net";

import { Pool } from "undici";

import { nowMicros } from "../clock.ts";
import { EndpointDirectory } from "../discovery/endpoint-directory.ts";
import { type GatewayOptions, createGateway } from "../gateway.ts";
import type { RouterTap } from "../router-tap.ts";
import type { Tokenizer } from "../tokenizer/tokenizer.ts";

type Shared = "identity" | "tokenizer" | "limits" | "requestUsage" | "continuesStreams";

export interface PathWarmUpOptions extends Pick<GatewayOptions, Shared> {
  /** Around a router of its own without endpoints, thrown away afterwards. */
  readonly tap: RouterTap;
  readonly requests?: number;
  readonly budgetMillis?: number;
}

const MODEL = "warm-up";
const IN_FLIGHT = 16;
const EVENTS = 20;

/**
 * Sends made-up requests through a gateway of its own to an engine of its own, both on loopback and gone afterwards, so
 * that the first real requests meet compiled code from socket to socket. Resolves with the number of requests answered.
 */
export async function warmUpPath(options: PathWarmUpOptions): Promise<number> {
  const { tap, requests = 3_000, budgetMillis = 1_500, ...shared } = options;
  const engine = createServer(answer);
  await new Promise<void>((resolve) => engine.listen(0, "127.0.0.1", resolve));
  const url = `http://127.0.0.1:${(engine.address() as AddressInfo).port}`;
  const directory = directoryOf(url, tap);
  const tokenizer = (model: string) => withoutLearning(shared.tokenizer(model));
  const gateway = createGateway({ ...shared, tokenizer, tap, directory, observe: SILENT });
  const pool = new Pool((await gateway.listen("127.0.0.1", 0)).url, { connections: IN_FLIGHT });
  const until = performance.now() + budgetMillis;
  let sent = 0;
  const client = async (): Promise<void> => {
    while (sent < requests && performance.now() < until) {
      const { body } = await pool.request({
        path: "/v1/chat/completions",
        method: "POST",
        headers: { "content-type": "application/json" },
        body: madeUpBody(sent++),
      });
      await body.dump();
    }
  };
  // Without sockets to spare it is a shorter warm-up, and no reason not to start.
  const failed = await Promise.allSettled(Array.from({ length: IN_FLIGHT }, client));
  const answered = sent - failed.filter(({ status }) => status === "rejected").length;
  await pool.destroy();
  await gateway.close(0);
  engine.closeAllConnections();
  await new Promise((resolve) => engine.close(resolve));
  return answered;
}

const SILENT = { finished: () => {}, retried: () => {}, tokenizerFellBack: () => {} };

/** The made-up engine's counts are of no prompt, so they must neither correct nor contradict a tokenizer. */
function withoutLearning(tokenizer: Tokenizer): Tokenizer {
  const { name } = tokenizer;
  return {
    name,
    encode: (prompt, scope, asker) => tokenizer.encode(prompt, scope, asker),
    learn: () => {},
    close: () => {},
  };
}

function directoryOf(url: string, tap: RouterTap): EndpointDirectory {
  const directory = new EndpointDirectory();
  const models = [{ id: MODEL, object: "model" as const }];
  directory.add({ id: url, url, dataParallelRank: undefined, apiKey: undefined, state: "ready", detail: "", models });
  const endpoint = { id: url, models: [MODEL], labels: {}, kvCapacityTokens: undefined, concurrencyMax: undefined };
  tap.accept({ kind: "endpoint-joined", at: nowMicros(), endpoint });
  return directory;
}

/** Conversations of one to eight messages, every fourth of them streamed. */
function madeUpBody(n: number): string {
  const messages = Array.from({ length: 1 + (n % 8) }, (_, i) => ({
    role: i % 2 === 0 ? "user" : "assistant",
    content: `${n >> 4} ${i} ${"made up for the warm-up ".repeat(10)}`,
  }));
  return JSON.stringify({ model: MODEL, messages, max_tokens: EVENTS, ...(n % 4 === 0 ? { stream: true } : {}) });
}

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

function answer(incoming: IncomingMessage, outgoing: ServerResponse): void {
  let streams = false;
  incoming.on("data", (chunk: Buffer) => (streams ||= chunk.includes('"stream":true')));
  incoming.on("end", () => {
    if (!streams) return void outgoing.writeHead(200, { "content-type": "application/json" }).end(WHOLE);
    outgoing.writeHead(200, { "content-type": "text/event-stream; charset=utf-8" });
    outgoing.write(ROLE);
    let left = EVENTS;
    const next = (): void => {
      if (outgoing.destroyed) return;
      if (left-- === 0) return void outgoing.end("data: [DONE]\n\n");
      outgoing.write(EVENT);
      setImmediate(next);
    };
    next();
  });
}
