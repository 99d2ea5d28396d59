import assert from "node:assert/strict";
import type { ServerResponse } from "node:http";
import { describe, it } from "node:test";
import { DriveExchange } from "#drive/exchange.ts";
import type { ExchangeResult } from "#drive/exchange-result.ts";
import { DriveTarget } from "#drive/target.ts";
import { event, startStubEngine, type StubOptions, type StubRequest } from "./stub-engine.ts";

const SSE = { "content-type": "text/event-stream" };
const USAGE = `data: ${JSON.stringify({ choices: [], usage: { prompt_tokens: 9, completion_tokens: 2, prompt_tokens_details: { cached_tokens: 4 } } })}\n\n`;

interface Ask {
  readonly stub?: StubOptions;
  readonly stream?: boolean;
  readonly abortAfterChunks?: number;
  readonly closeAfterMillis?: number;
}

async function ask({ stub = {}, stream = true, abortAfterChunks, closeAfterMillis }: Ask): Promise<ExchangeResult> {
  const engine = await startStubEngine(stub);
  const target = new DriveTarget(engine.url, 1);
  try {
    return await send(target, stream, abortAfterChunks, closeAfterMillis);
  } finally {
    await target.close();
    await engine.close();
  }
}

function send(
  target: DriveTarget,
  stream: boolean,
  abortAfterChunks?: number,
  closeAfterMillis?: number,
): Promise<ExchangeResult> {
  return new Promise((resolve) => {
    const now = () => Math.round(performance.now() * 1_000);
    const exchange = new DriveExchange({ stream, now, abortAfterChunks, onEnd: resolve });
    const body = Buffer.from(JSON.stringify({ prompt: "x y z", max_tokens: 3, stream }));
    target.post("/v1/completions", ["content-type", "application/json"], body, exchange);
    if (closeAfterMillis !== undefined) setTimeout(() => exchange.close("timeout"), closeAfterMillis);
  });
}

function streams(...parts: string[]): StubOptions {
  return answers((_, response) => response.writeHead(200, SSE).end(parts.join("")));
}

function answers(answer: (request: StubRequest, response: ServerResponse) => void): StubOptions {
  return { answer: (request, response) => (answer(request, response), true) };
}

const TOKEN = 'data: {"choices":[{"index":0,"text":" a","finish_reason":null}]}\n\n';
const EMPTY = 'data: {"choices":[{"index":0,"text":"","finish_reason":null}]}\n\n';
const LAST = 'data: {"choices":[{"index":0,"text":" b","finish_reason":"length"}]}\n\n';
const DONE = "data: [DONE]\n\n";

describe("an exchange", () => {
  it("measures a stream and takes the engine's own counts", async () => {
    const result = await ask({
      stub: { headers: { "x-gnomon-endpoint": "pod-7", "x-gnomon-hit-tokens": "1" }, cachedTokens: 1, tokenMillis: 2 },
    });
    assert.equal(result.outcome, "ok");
    assert.deepEqual([result.endpoint, result.gatewayHitTokens], ["pod-7", 1]);
    assert.deepEqual([result.promptTokens, result.cachedTokens, result.completionTokens], [2, 1, 3]);
    assert.equal(result.finishReason, "length");
    const { sentMicros, headersMicros, firstTokenMicros, lastTokenMicros, endMicros } = result;
    const times = [sentMicros, headersMicros, firstTokenMicros, lastTokenMicros, endMicros];
    assert.deepEqual(
      times,
      [...times].sort((a, b) => a - b),
    );
  });

  it("takes the first chunk that is not empty for the first token", async () => {
    const pieces = [EMPTY, TOKEN, LAST + USAGE + DONE];
    let millis = 0;
    let sendNext = (): void => {};
    const engine = await startStubEngine(
      answers((_, response) => {
        response.writeHead(200, SSE).flushHeaders();
        sendNext = () => void (pieces.length > 1 ? response.write(pieces.shift()!) : response.end(pieces.shift()));
      }),
    );
    const target = new DriveTarget(engine.url, 1);
    /** Ten milliseconds after each piece was read the next one is sent. */
    class Read extends DriveExchange {
      override onResponseStart(...head: Parameters<DriveExchange["onResponseStart"]>): void {
        super.onResponseStart(...head);
        this.#next();
      }
      override onResponseData(...piece: Parameters<DriveExchange["onResponseData"]>): void {
        super.onResponseData(...piece);
        this.#next();
      }
      #next(): void {
        millis += 10;
        sendNext();
      }
    }
    const result = await new Promise<ExchangeResult>((resolve) => {
      const now = () => 1_000 * millis;
      const exchange = new Read({ stream: true, now, abortAfterChunks: undefined, onEnd: resolve });
      target.post("/v1/completions", [], Buffer.from('{"stream":true}'), exchange);
    });
    await target.close();
    await engine.close();
    assert.deepEqual([result.headersMicros, result.firstTokenMicros, result.lastTokenMicros], [0, 20_000, 30_000]);
    assert.deepEqual([result.outcome, result.completionTokens, result.cachedTokens], ["ok", 2, 4]);
  });

  it("reads a whole answer, which has no first token", async () => {
    const result = await ask({ stream: false, stub: { cachedTokens: 2 } });
    assert.deepEqual([result.outcome, result.completionTokens, result.cachedTokens], ["ok", 3, 2]);
    assert.ok(Number.isNaN(result.firstTokenMicros) && result.endMicros > result.sentMicros);
  });

  it("does not need usage: it counts chunks", async () => {
    const result = await ask({ stub: streams(TOKEN, TOKEN, LAST, DONE) });
    assert.deepEqual([result.outcome, result.completionTokens], ["ok", 3]);
    assert.ok(Number.isNaN(result.promptTokens) && Number.isNaN(result.cachedTokens));
  });

  it("counts a token without a text of its own when usage does", async () => {
    assert.equal((await ask({ stub: streams(EMPTY, USAGE, DONE) })).outcome, "ok");
  });

  const faults: [string, Ask][] = [
    ["http-503", { stub: answers((_, response) => response.writeHead(503, SSE).end('{"error":{}}')) }],
    ["http-307", { stub: answers((_, response) => response.writeHead(307, { location: "/x" }).end()) }],
    [
      "content-type",
      { stub: answers((_, response) => response.writeHead(200, { "content-type": "text/html" }).end("hi")) },
    ],
    ["in-band-error", { stub: streams(TOKEN, 'data: {"error": {"message": "gone"}}\n\n', DONE) }],
    ["engine-abort", { stub: streams(TOKEN, LAST.replace("length", "abort"), DONE) }],
    ["no-done", { stub: streams(TOKEN, LAST) }],
    ["garbage", { stub: streams(TOKEN, LAST, "data: {oops\n\n", DONE) }],
    [
      "garbage",
      {
        stream: false,
        stub: answers((_, response) => response.writeHead(200, { "content-type": "application/json" }).end("{")),
      },
    ],
    ["empty", { stub: streams(EMPTY, DONE) }],
    ["no-response", { stub: answers((_, response) => response.destroy()) }],
    [
      "cut",
      {
        stub: answers((request, response) =>
          response.writeHead(200, SSE).write(event(request, null), () => response.destroy()),
        ),
      },
    ],
    ["timeout", { stub: answers(() => {}), closeAfterMillis: 20 }],
    ["aborted", { stub: { tokenMillis: 5 }, abortAfterChunks: 1 }],
  ];
  for (const [outcome, how] of faults)
    it(`reports the failure: ${outcome}${how.stream === false ? " (whole answer)" : ""}`, async () => {
      assert.equal((await ask(how)).outcome, outcome);
    });

  it("reports that nobody listens", async () => {
    const engine = await startStubEngine();
    await engine.close();
    const target = new DriveTarget(engine.url, 1);
    assert.equal((await send(target, true)).outcome, "connect");
    await target.close();
  });
});
