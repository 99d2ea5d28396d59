import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import OpenAI from "openai";
import type { EmulatorOptions } from "#emulator/server.ts";
import { startAs } from "./captures.ts";
import { parseResponse } from "./http-message.ts";
import { requestBytes, sendRaw } from "./raw-client.ts";
import { shapeOf } from "./shape.ts";

interface Recorded {
  readonly server: "classify" | "embed" | "score";
  readonly method: string;
  readonly path: string;
  readonly body: unknown;
  readonly status: string;
  readonly headers: readonly string[];
  readonly text: string;
}

const FILE = new URL("../golden/vllm-pooling/answers.jsonl", import.meta.url);
const records = readFileSync(FILE, "utf8")
  .split("\n")
  .filter((line) => line !== "")
  .map((line) => JSON.parse(line) as Recorded);

const SERVERS: Readonly<Record<Recorded["server"], Partial<EmulatorOptions>>> = {
  classify: { pooling: { task: "classify", size: 3 }, sleepMode: true },
  embed: { pooling: { task: "embed", size: 64 }, sleepMode: true },
  score: { pooling: { task: "classify", size: 1 }, sleepMode: true },
};

/** Refusals that list every alternative of a union: status, type and code are compared. */
const UNIONS = /validation errors?:/;

for (const [server, options] of Object.entries(SERVERS)) {
  const recorded = records.filter((record) => record.server === server);
  if (recorded.length === 0) continue;
  test(`a ${server} model and its sleep mode answer as vLLM does, ${recorded.length} records`, async () => {
    const emulator = await startAs("18109", options);
    try {
      for (const record of recorded) {
        const { method, path, body } = record;
        const what = `${method} ${path} ${JSON.stringify(body)}`;
        const bytes = requestBytes(method, path, body ?? undefined, ["Connection: close"]);
        const answer = parseResponse(await sendRaw(emulator.port, bytes, () => false));
        assert.equal(answer.statusLine, record.status, what);
        const names = answer.headers.map(([name]) => name).filter((name) => name !== "connection");
        assert.deepEqual(names, record.headers, what);
        compare(record, answer.chunks.join(""), what);
      }
    } finally {
      await emulator.close();
    }
  });
}

function compare(record: Recorded, text: string, what: string): void {
  const isSleep = /sleep|wake/.test(record.path);
  if (record.status.includes(" 200 ") && !isSleep) {
    assert.deepEqual(shapeOf(JSON.parse(text)), shapeOf(JSON.parse(record.text)), what);
  } else if (UNIONS.test(record.text) && !isSleep) {
    const kind = (json: string) => {
      const { error } = JSON.parse(json) as { error: { type: string; code: number } };
      return [error.type, error.code];
    };
    assert.deepEqual(kind(text), kind(record.text), what);
  } else assert.equal(text, record.text, what);
}

const json = async (url: string, path: string, body: object) => {
  const init = { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) };
  return (await fetch(url + path, init)).json();
};

test("the openai client gets embeddings: the same for the same text, nearer for what shares words, found in the cache", async () => {
  const emulator = await startAs("18109", { pooling: { task: "embed", size: 64 } });
  const client = new OpenAI({ baseURL: `${emulator.url}/v1`, apiKey: "none", maxRetries: 0 });
  const texts = ["the cat sat on the mat", "the cat sat on the rug", "quantum flux in 1 9 8 4"];
  const { data, usage } = await client.embeddings.create({ model: "tiny", input: [...texts, texts[0]!] });
  const [cat, rug, flux, again] = data.map(({ embedding }) => embedding);
  const cosine = (a: readonly number[], b: readonly number[]) => a.reduce((sum, value, i) => sum + value * b[i]!, 0);
  assert.deepEqual(cat, again);
  assert.ok(Math.abs(cosine(cat!, cat!) - 1) < 1e-5);
  assert.ok(cosine(cat!, rug!) > cosine(cat!, flux!));
  assert.ok(usage.prompt_tokens > 0 && usage.total_tokens === usage.prompt_tokens);
  const prompt = Array.from({ length: 100 }, (_, i) => 300 + i);
  for (let i = 0; i < 2; i++) await client.embeddings.create({ model: "tiny", input: prompt });
  const page = await (await fetch(`${emulator.url}/metrics`)).text();
  assert.match(page, /vllm:prefix_cache_hits_total\{.*\} 96\.0/, "three blocks of 32 of the second one");
  assert.match(page, /vllm:generation_tokens_total\{.*\} 0\.0/);
  assert.match(page, /vllm:request_success_total\{.*finished_reason="stop".*\} 6\.0/);
  assert.equal(emulator.stats().finished, 6);
  await emulator.close();
});

test("scores are those of the embeddings, and reranked documents come nearest first", async () => {
  const emulator = await startAs("18109", { pooling: { task: "embed", size: 64 } });
  const query = "where is the cat";
  const documents = ["1 2 3 4", "where is the cat now", "the cat"];
  const scored = (await json(emulator.url, "/score", { text_1: query, text_2: documents })) as {
    data: { score: number }[];
  };
  const ranked = (await json(emulator.url, "/rerank", { query, documents, top_n: 2 })) as {
    results: { index: number; document: { text: string }; relevance_score: number }[];
  };
  const scores = scored.data.map(({ score }) => score);
  assert.deepEqual(
    ranked.results.map(({ relevance_score }) => relevance_score),
    scores.toSorted((a, b) => b - a).slice(0, 2),
  );
  assert.equal(ranked.results[0]?.document.text, documents[1]);
  assert.equal(ranked.results[0]?.index, 1);
  await emulator.close();
});

test("a classifier of one class scores pairs, one of several has no such route", async () => {
  const one = await startAs("18109", { pooling: { task: "classify", size: 1 } });
  const scored = (await json(one.url, "/v1/score", { queries: ["a", "b"], documents: ["c", "d"] })) as {
    data: { score: number }[];
  };
  assert.ok(scored.data.length === 2 && scored.data.every(({ score }) => score > 0 && score < 1));
  await one.close();
  const several = await startAs("18109", { pooling: { task: "classify", size: 2 } });
  assert.deepEqual(await json(several.url, "/score", { text_1: "a", text_2: "b" }), { detail: "Not Found" });
  await several.close();
});
