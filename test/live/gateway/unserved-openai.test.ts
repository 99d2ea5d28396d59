import assert from "node:assert/strict";
import { test } from "node:test";
import OpenAI, { toFile } from "openai";
import { startRig } from "./rig.ts";
import { jsonReply, type Reply } from "./stub-engine.ts";

/** As a vLLM engine of a text model answers where it has no such route. */
const ABSENT: Reply = (_request, socket) => void socket.write(jsonReply(404, { detail: "Not Found" }));

test("the openai package has an error object for what engines lack, and a plain word for what is not served here", async (t) => {
  const rig = await startRig([ABSENT]);
  t.after(() => rig.close());
  const client = new OpenAI({ baseURL: `${rig.url}/v1`, apiKey: "sk-test", maxRetries: 0 });
  const file = () => toFile(Buffer.from("RIFF"), "a.wav");
  const engines = /The engines of this model do not serve this path/;
  const here = /batches, files, .* are not served here/;
  const calls: Readonly<Record<string, readonly [ask: () => PromiseLike<unknown>, says: RegExp]>> = {
    embeddings: [() => client.embeddings.create({ model: "tiny", input: "x" }), engines],
    speech: [() => client.audio.speech.create({ model: "tiny", input: "x", voice: "alloy" }), engines],
    transcription: [async () => client.audio.transcriptions.create({ model: "tiny", file: await file() }), engines],
    responses: [() => client.responses.create({ model: "tiny", input: "x" }), engines],
    rerank: [() => client.post("/rerank", { body: { model: "tiny", query: "x", documents: ["y"] } }), engines],
    moderations: [() => client.moderations.create({ input: "x" }), /There is nothing at POST \/v1\/moderations/],
    "stored response": [() => client.responses.retrieve("resp_1"), /resp_1|not found|do not serve/i],
    "list batches": [() => client.batches.list(), here],
    "make a batch": [
      () => client.batches.create({ input_file_id: "f", endpoint: "/v1/completions", completion_window: "24h" }),
      here,
    ],
    "list files": [() => client.files.list(), here],
    "send a file": [async () => client.files.create({ purpose: "batch", file: await file() }), here],
    "read a file": [() => client.files.content("file-1"), here],
  };
  for (const [name, [ask, says]] of Object.entries(calls)) {
    const error: unknown = await Promise.resolve(ask()).then(
      () => assert.fail(`${name}: answered`),
      (reason: unknown) => reason,
    );
    assert.ok(error instanceof OpenAI.NotFoundError, `${name}: ${String(error)}`);
    assert.match(error.message, says, name);
    assert.ok(error.error !== undefined, `${name}: the API's error object`);
  }
});
