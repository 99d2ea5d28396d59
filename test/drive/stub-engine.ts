import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

export interface StubRequest {
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: Record<string, unknown>;
  /** ms since the stub started. */
  readonly atMillis: number;
}

export interface StubEngine {
  readonly url: string;
  readonly requests: StubRequest[];
  /** Answers that a client left before their end. */
  readonly closedEarly: () => number;
  readonly close: () => Promise<void>;
}

export interface StubOptions {
  readonly tokenMillis?: number;
  readonly headers?: Record<string, string>;
  readonly cachedTokens?: number;
  /** Takes over the answer; false to leave it to the stub. */
  readonly answer?: (request: StubRequest, response: ServerResponse) => boolean;
}

/** A tiny OpenAI-shaped server on a free port of 127.0.0.1 that streams `max_tokens` tokens. */
export async function startStubEngine(options: StubOptions = {}): Promise<StubEngine> {
  const requests: StubRequest[] = [];
  const start = performance.now();
  let closedEarly = 0;
  const server = createServer((incoming, response) => {
    response.on("close", () => {
      if (!response.writableFinished) closedEarly++;
    });
    void handle(incoming, response).catch(() => response.destroy());
  });
  server.listen(0, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    closedEarly: () => closedEarly,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };

  async function handle(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    const path = incoming.url ?? "";
    if (path === "/v1/models") {
      json(response, { object: "list", data: [{ id: "stub-model" }] });
      return;
    }
    const chunks: Buffer[] = [];
    for await (const chunk of incoming) chunks.push(chunk as Buffer);
    const body = JSON.parse(Buffer.concat(chunks).toString("utf8")) as Record<string, unknown>;
    const request = { path, headers: incoming.headers, body, atMillis: performance.now() - start };
    requests.push(request);
    if (options.answer?.(request, response) === true) return;
    if (body["stream"] === true) await stream(request, response);
    else json(response, { ...whole(request), usage: usage(request) });
  }

  async function stream(request: StubRequest, response: ServerResponse): Promise<void> {
    response.writeHead(200, { "content-type": "text/event-stream; charset=utf-8", ...options.headers });
    response.flushHeaders();
    const tokens = Number(request.body["max_tokens"]);
    for (let i = 0; i < tokens && !response.destroyed; i++) {
      await new Promise((resolve) => setTimeout(resolve, options.tokenMillis ?? 0));
      response.write(event(request, i === tokens - 1 ? "length" : null));
    }
    response.write(`data: ${JSON.stringify({ choices: [], usage: usage(request) })}\n\n`);
    response.end("data: [DONE]\n\n");
  }

  function usage(request: StubRequest): object {
    return {
      prompt_tokens: promptTokens(request.body),
      completion_tokens: request.body["max_tokens"],
      prompt_tokens_details: { cached_tokens: options.cachedTokens ?? 0 },
    };
  }

  function json(response: ServerResponse, body: object): void {
    response.writeHead(200, { "content-type": "application/json", ...options.headers }).end(JSON.stringify(body));
  }
}

export function event(request: StubRequest, finish: string | null): string {
  const choice = isChat(request) ? { delta: { content: " tok" } } : { text: " tok" };
  return `data: ${JSON.stringify({ choices: [{ index: 0, ...choice, finish_reason: finish }] })}\n\n`;
}

/** The prompt as text, or its token ids joined. */
export function promptOf(body: Record<string, unknown>): string {
  const { prompt, messages } = body;
  if (typeof prompt === "string") return prompt;
  if (Array.isArray(prompt)) return prompt.join(",");
  return (messages as { content: string }[]).map(({ content }) => content).join("");
}

function promptTokens(body: Record<string, unknown>): number {
  return Array.isArray(body["prompt"]) ? body["prompt"].length : Math.ceil(promptOf(body).length / 4);
}

function whole(request: StubRequest): object {
  const choice = isChat(request) ? { message: { content: "tok" } } : { text: "tok" };
  return { choices: [{ index: 0, ...choice, finish_reason: "length" }] };
}

function isChat(request: StubRequest): boolean {
  return request.path.includes("chat");
}
