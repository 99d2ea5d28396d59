import assert from "node:assert/strict";
import { readFile, readdir } from "node:fs/promises";
import { createServer, type AddressInfo } from "node:net";
import { join } from "node:path";
import { describe, it } from "node:test";
import { DriveExchange } from "#drive/exchange.ts";
import type { ExchangeResult } from "#drive/exchange-result.ts";
import { DriveTarget } from "#drive/target.ts";

const CAPTURES = join(import.meta.dirname, "../golden/vllm-http");

/** Sends a request to a server that answers with these bytes, cut into pieces of `pieceBytes`, and closes. */
async function exchanged(bytes: Buffer, stream: boolean, pieceBytes: number): Promise<ExchangeResult> {
  const server = createServer((socket) => {
    socket.on("error", () => {});
    socket.once("data", () => {
      for (let at = 0; at < bytes.length; at += pieceBytes) socket.write(bytes.subarray(at, at + pieceBytes));
      socket.end();
    });
  });
  server.listen(0, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const target = new DriveTarget(url, 1);
  try {
    return await new Promise((resolve) => {
      const now = () => Math.round(performance.now() * 1_000);
      const exchange = new DriveExchange({ stream, now, abortAfterChunks: undefined, onEnd: resolve });
      target.post("/v1/completions", [], Buffer.from("{}"), exchange);
    });
  } finally {
    await target.close();
    await new Promise((resolve) => server.close(resolve));
  }
}

/** What the capture itself says, read by plain text search. */
function told(text: string): { prompt: number; completion: number; cached: number } {
  const last = (pattern: RegExp) => Number([...text.matchAll(pattern)].at(-1)?.[1] ?? Number.NaN);
  return {
    prompt: last(/"prompt_tokens":(\d+)/g),
    completion: last(/"completion_tokens":(\d+)/g),
    cached: last(/"cached_tokens":(\d+)/g),
  };
}

/** Some captures leave out their middle: the whole chunks before and after the gap are joined. */
function withoutGap(bytes: Buffer): Buffer {
  const [head = "", tail] = bytes.toString("latin1").split("...cut...");
  if (tail === undefined) return bytes;
  const chunkEnd = "\n\n\r\n";
  const before = head.slice(0, head.lastIndexOf(chunkEnd) + chunkEnd.length);
  return Buffer.from(before + tail.slice(tail.indexOf(chunkEnd) + chunkEnd.length), "latin1");
}

describe("answers captured from vLLM", async () => {
  const names = (await readdir(CAPTURES)).filter((name) => name.endsWith(".http") && !name.endsWith(".req.http"));
  const read = (name: string) => readFile(join(CAPTURES, name));

  const answers = names.filter(
    (name) => /^(chat|completions)_.*\.http$/.test(name) && !/render|batch|suffix/.test(name),
  );
  for (const name of answers)
    it(`are read to the end: ${name}`, async () => {
      const bytes = await read(name);
      const text = bytes.toString();
      assert.match(text, /^HTTP\/1.1 200 /);
      const stream = text.includes("text/event-stream");
      const results = [await exchanged(bytes, stream, bytes.length), await exchanged(bytes, stream, 97)];
      for (const result of results) {
        assert.equal(result.outcome, "ok");
        const { prompt, completion, cached } = told(text);
        assert.deepEqual([result.promptTokens, result.cachedTokens], [prompt, cached]);
        if (!Number.isNaN(completion)) assert.equal(result.completionTokens, completion);
        assert.ok(result.completionTokens > 0 && result.finishReason !== "");
        assert.equal(Number.isNaN(result.firstTokenMicros), !stream);
      }
    });

  for (const name of names.filter((name) => name.startsWith("err_") && !name.endsWith("trailing_slash.http")))
    it(`are failures by their status: ${name}`, async () => {
      const bytes = await read(name);
      const status = Number(bytes.toString("latin1", 9, 12));
      const result = await exchanged(bytes, name.includes("stream"), bytes.length);
      if (status === 200) assert.equal(result.outcome, "ok");
      else assert.equal(result.outcome, `http-${status}`);
    });

  for (const [name, outcome] of [
    ["sigterm_shutdown_timeout_20_new_request_ids_while_draining.http", "engine-abort"],
    ["sigterm_shutdown_timeout_20_new_request_while_draining.http", "http-500"],
    ["engine_crash_stream.tail.http", "in-band-error"],
    ["engine_crash_chat_stream.tail.http", "in-band-error"],
    ["engine_crash_nonstream.tail.http", "http-500"],
  ] as const)
    it(`of an engine that goes are failures: ${name}`, async () => {
      const bytes = withoutGap(await read(name));
      const stream = bytes.includes("text/event-stream");
      assert.equal((await exchanged(bytes, stream, 211)).outcome, outcome);
    });
});
