/**
 * Child process: the least that a Hono gateway can be, to compare with. Reads the body once, parses it once, and pipes
 * undici's dispatch into the response, round robin over the endpoints; SSE chunks are framed by hand as in the gateway.
 */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

import { type HttpBindings, getRequestListener } from "@hono/node-server";
import { RESPONSE_ALREADY_SENT } from "@hono/node-server/utils/response";
import { Hono } from "hono";
import { type Dispatcher, Pool } from "undici";

import { framed } from "#live/answer/client-writer.ts";

const pools = process.argv
  .slice(2)
  .map((port) => new Pool(`http://127.0.0.1:${port}`, { connections: 16_384, headersTimeout: 0, bodyTimeout: 0 }));
let turn = 0;

/** Sink of one answer. */
class Pipe implements Dispatcher.DispatchHandler {
  readonly #response: HttpBindings["outgoing"];
  #chunked = false;

  constructor(response: HttpBindings["outgoing"]) {
    this.#response = response;
  }
  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#response.on("close", () => {
      if (!this.#response.writableEnded) controller.abort(new Error("client left"));
    });
  }
  onResponseStart(_c: Dispatcher.DispatchController, status: number, headers: Record<string, string | string[]>): void {
    const { connection: _connection, "transfer-encoding": encoding, ...kept } = headers;
    this.#response.writeHead(status, kept);
    this.#chunked = encoding === "chunked";
    if (!this.#chunked) return;
    this.#response.flushHeaders();
    this.#response.chunkedEncoding = false;
  }
  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (this.#response.write(this.#chunked ? framed(chunk) : chunk)) return;
    controller.pause();
    this.#response.once("drain", () => controller.resume());
  }
  onResponseEnd(): void {
    this.#response.end(this.#chunked ? "0\r\n\r\n" : undefined);
  }
  onResponseError(): void {
    this.#response.destroy();
  }
}

const app = new Hono<{ Bindings: HttpBindings }>();
app.post("/v1/chat/completions", (c) => {
  const { incoming, outgoing } = c.env;
  const chunks: Buffer[] = [];
  incoming.on("data", (chunk: Buffer) => chunks.push(chunk));
  incoming.on("end", () => {
    const body = chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks);
    JSON.parse(body.toString());
    const headers: string[] = [];
    for (let i = 0; i < incoming.rawHeaders.length; i += 2) {
      const name = incoming.rawHeaders[i]!.toLowerCase();
      if (name !== "host" && name !== "connection" && name !== "content-length") {
        headers.push(name, incoming.rawHeaders[i + 1]!);
      }
    }
    const pool = pools[turn++ % pools.length]!;
    pool.dispatch({ path: "/v1/chat/completions", method: "POST", headers, body }, new Pipe(outgoing));
  });
  return RESPONSE_ALREADY_SENT;
});

const listener = getRequestListener(app.fetch);
const server = createServer((incoming, outgoing) => void listener(incoming, outgoing));
server.listen(0, "127.0.0.1", () => process.send!({ port: (server.address() as AddressInfo).port }));
process.on("disconnect", () => process.exit(0));
