import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, it } from "node:test";
import { ImportError } from "#trace/import/import-report.ts";
import { golden, readAll } from "./read-all.ts";
import { temporaryFolder } from "./temporary-folder.ts";

const SAMPLES = [
  "mooncake.jsonl",
  "azure.csv",
  "weka",
  "lmcache",
  "token-ids.jsonl",
  "spec.yaml",
  "vllm-engine-timed",
  "vllm-client-timed",
];

describe("every reader", () => {
  for (const sample of SAMPLES) {
    it(`accounts for every record and keeps the contract: ${sample}`, async () => {
      const { requests, report } = await readAll(golden(sample));
      assert.ok(requests.length > 0);
      assert.equal(report.records, report.accepted + report.refusedTotal);
      assert.equal(report.accepted, requests.length);
      const turns = new Map<string, number>();
      let arrival = 0;
      for (const [i, request] of requests.entries()) {
        assert.equal(request.index, i);
        assert.ok(request.promptTokens >= 1 && request.outputTokens >= 1);
        assert.ok(Number.isInteger(request.promptTokens) && Number.isInteger(request.outputTokens));
        const blocks = request.promptTokens / request.blockTokens;
        const count = request.blockIds?.length ?? Math.ceil(blocks);
        assert.ok(count === Math.floor(blocks) || count === Math.ceil(blocks), "one id per block");
        for (const id of request.blockIds ?? []) assert.ok(Number.isSafeInteger(id) && id >= 0);
        if (request.session !== "") {
          assert.equal(request.turn, (turns.get(request.session) ?? -1) + 1, "turns in order");
          turns.set(request.session, request.turn);
        }
        if (request.thinkMicros !== undefined) {
          assert.ok(Number.isInteger(request.thinkMicros) && request.thinkMicros >= 0);
          continue;
        }
        assert.equal(request.turn, 0, "an arrival belongs to a first turn");
        assert.ok(Number.isInteger(request.arrivalMicros) && request.arrivalMicros >= arrival, "arrivals in order");
        arrival = request.arrivalMicros;
      }
    });

    it(`reads the same twice: ${sample}`, async () => {
      const first = await readAll(golden(sample), { seed: 7 });
      const second = await readAll(golden(sample), { seed: 7 });
      assert.deepEqual(first.requests, second.requests);
      assert.deepEqual([...first.report.refused], [...second.report.refused]);
    });
  }

  it("equal ids mean equal ids before them", async () => {
    for (const sample of SAMPLES) {
      const { requests } = await readAll(golden(sample), { sharedPrefix: 0.5 });
      const before = new Map<number, number>();
      for (const { blockIds } of requests)
        for (const [i, id] of (blockIds ?? []).entries()) {
          const parent = i === 0 ? -1 : (blockIds?.[i - 1] ?? -1);
          assert.equal(before.get(id) ?? parent, parent, `${sample}: block ${id} has two parents`);
          before.set(id, parent);
        }
    }
  });

  for (const [sample, place] of [
    ["mooncake.jsonl", /mooncake\.jsonl:5: output_length is not a number of tokens/],
    ["azure.csv", /azure\.csv:4: not a row of TIMESTAMP/],
    ["weka", /trace_a\[6\]: out is not a number of tokens/],
    ["lmcache", /one\.jsonl:4: empty input/],
    ["vllm-engine-timed", /requests\.jsonl:5: input_toks is not the number/],
    ["vllm-client-timed", /requests\.jsonl:6: completion_tokens is not/],
    ["token-ids.jsonl", /token-ids\.jsonl:3: input_toks is not the number of input_tok_ids/],
  ] as const)
    it(`names the place of an unusable record, and strict refuses it: ${sample}`, async () => {
      const { report } = await readAll(golden(sample));
      assert.ok(
        report.places.some((text) => place.test(text)),
        report.places.join("\n"),
      );
      await assert.rejects(readAll(golden(sample), { strict: true }), (error) => {
        assert.ok(error instanceof ImportError);
        assert.match(error.message, place);
        return true;
      });
    });

  it("never repeats a record's content in a refusal", async () => {
    await using folder = await temporaryFolder();
    const file = join(folder.path, "secret.jsonl");
    const lines = [
      '{"timestamp":1,"input":"a","output":"b","session_id":"s"}',
      '{"timestamp":"my secret","input":"my secret"}',
    ];
    await writeFile(file, `${lines.join("\n")}\nmy secret\n`);
    const { report } = await readAll(file);
    assert.equal(report.refusedTotal, 2);
    assert.doesNotMatch(JSON.stringify([report.places, [...report.refused]]), /my secret/);
  });
});
