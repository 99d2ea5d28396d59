/**
 * Child process: an endpoint that speaks as much of vLLM as a gateway asks for, with room for some requests at once and
 * faults on purpose. Orders come as messages from its parent.
 *
 *     node faulty-engine.ts PORT SLOTS TOKENS TOKEN_MILLIS SEED
 *
 * Answers have half to one and a half times as many tokens.
 */
import { type IncomingMessage, type ServerResponse, createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { FAULTS, type Fault, type Order } from "./fault.ts";

const [portText = "0", slotsText = "16", tokensText = "20", tokenMillisText = "10", seedText = "1"] =
  process.argv.slice(2);
const slots = Number(slotsText);
const tokens = Number(tokensText);
const tokenMillis = Number(tokenMillisText);
/** A body with it is answered whole and at once. */
const AT_ONCE = '"max_tokens":1}';
/** How long "hang" and "slow" take, so that a run ends. */
const HANG_MILLIS = 60_000;
const SLOW_MILLIS = 300;

let state = Number(seedText);
let faults: Partial<Record<Fault, number>> = {};
let running = 0;
let served = 0;
const waiting: (() => void)[] = [];

function draw(): number {
  state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7fffffff;
  return (state >>> 8) / 0x7fffff;
}

function faultNow(): Fault | undefined {
  let left = draw();
  for (const fault of FAULTS) {
    left -= faults[fault] ?? 0;
    if (left < 0) return fault;
  }
  return undefined;
}

const server = createServer((request, response) => {
  if (request.url === "/health") return void response.end();
  if (request.url === "/v1/models")
    return json(response, 200, { object: "list", data: [{ id: "tiny", object: "model" }] });
  if (request.url === "/metrics") return void response.end(page());
  if (request.method !== "POST") return void response.end();
  const chunks: Buffer[] = [];
  request.on("data", (chunk: Buffer) => chunks.push(chunk));
  request.on("end", () => admit(request, response, Buffer.concat(chunks).toString()));
});
server.keepAliveTimeout = 5_000;

function admit(request: IncomingMessage, response: ServerResponse, body: string): void {
  const serve = (): void => {
    if (response.destroyed) return next();
    running++;
    let isOver = false;
    const over = (): void => {
      if (isOver) return;
      isOver = true;
      running--;
      served++;
      next();
    };
    response.on("close", over);
    if (body.includes(AT_ONCE)) whole(response, false, 0);
    else answer(request, response, /"stream":\s*true/.test(body));
  };
  if (running < slots) serve();
  else waiting.push(serve);
}

function next(): void {
  if (running < slots) waiting.shift()?.();
}

function answer({ socket }: IncomingMessage, response: ServerResponse, streams: boolean): void {
  switch (faultNow()) {
    case "status":
      return json(response, 500, { error: { message: "engine error", type: "InternalServerError", code: 500 } });
    case "refuse":
      return json(response, 503, { error: { message: "The engine is busy.", type: "ServiceUnavailable", code: 503 } });
    case "drain":
      return json(response, 500, { error: { message: "cannot schedule new futures after shutdown", code: 500 } });
    case "reset":
      return void socket.resetAndDestroy();
    case "garbage":
      return void response.writeHead(200, { "content-type": "application/json" }).end("<html>not an answer");
    case "empty":
      return void socket.end();
    case "cut":
      return streams ? stream(response, Math.ceil(tokens / 2), () => socket.destroy()) : void socket.destroy();
    case "hang":
      return void setTimeout(() => response.destroy(), HANG_MILLIS).unref();
    case "slow":
      return void setTimeout(() => whole(response, streams), SLOW_MILLIS);
    case undefined:
      return whole(response, streams);
  }
}

function whole(response: ServerResponse, streams: boolean, millis?: number): void {
  const count = Math.max(1, Math.round(tokens * (0.5 + draw())));
  if (streams) return stream(response, count, () => response.end("data: [DONE]\n\n"));
  const message = { role: "assistant", content: "hello" };
  const usage = { prompt_tokens: 8, completion_tokens: tokens, total_tokens: 8 + tokens };
  setTimeout(
    () => {
      json(response, 200, {
        object: "chat.completion",
        model: "tiny",
        choices: [{ index: 0, message, finish_reason: "stop" }],
        usage,
      });
    },
    millis ?? count * tokenMillis,
  );
}

function stream(response: ServerResponse, count: number, done: () => void): void {
  response.writeHead(200, { "content-type": "text/event-stream; charset=utf-8" });
  response.flushHeaders();
  let sent = 0;
  const timer = setInterval(() => {
    if (response.destroyed) return clearInterval(timer);
    const isLast = ++sent === count;
    const choice = { index: 0, delta: { content: `t${sent} ` }, finish_reason: isLast ? "stop" : null };
    response.write(
      `data: ${JSON.stringify({ object: "chat.completion.chunk", model: "tiny", choices: [choice] })}\n\n`,
    );
    if (sent < count) return;
    clearInterval(timer);
    done();
  }, tokenMillis);
}

function json(response: ServerResponse, status: number, body: object): void {
  response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
}

function page(): string {
  const labels = '{model_name="tiny",engine="0"}';
  const config = '{block_size="16",num_gpu_blocks="65536",engine="0"}';
  return [
    `vllm:num_requests_running${labels} ${running}`,
    `vllm:num_requests_waiting${labels} ${waiting.length}`,
    `vllm:kv_cache_usage_perc${labels} ${Math.min(1, running / Math.max(1, slots) / 2)}`,
    `vllm:cache_config_info${config} 1`,
    "",
  ].join("\n");
}

process.on("message", (order: Order) => {
  if (order === "drain") {
    server.close(() => process.exit(0));
    setInterval(() => server.closeIdleConnections(), 20).unref();
  } else faults = order.faults;
});
process.on("disconnect", () => process.exit(0));
server.listen(Number(portText), "127.0.0.1", () =>
  process.send?.({ port: (server.address() as AddressInfo).port, served }),
);
