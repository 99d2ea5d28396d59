import assert from "node:assert/strict";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, test } from "node:test";
import { ids, readAll } from "./read-all.ts";
import { temporaryFolder } from "./temporary-folder.ts";

const lines = (...records: readonly object[]) => records.map((record) => `${JSON.stringify(record)}\n`).join("");

describe("Dynamo's request traces", () => {
  const ended = (received: number, total: number, more: object = {}, session?: string) => ({
    schema: "dynamo.request.trace.v1",
    event_type: "request_end",
    event_time_unix_ms: received + total,
    ...(session !== undefined && { agent_context: { session_id: session } }),
    request: {
      request_id: `r${received}`,
      model: "m",
      request_received_ms: received,
      total_time_ms: total,
      output_tokens: 20,
      replay: { trace_block_size: 64, input_length: 130, input_sequence_hashes: [11, 12, 13] },
      ...more,
    },
  });

  test("are read in the order of arrival, though they are written as requests end", async () => {
    await using folder = await temporaryFolder();
    const path = join(folder.path, "t.jsonl");
    const tool = { schema: "dynamo.request.trace.v1", event_type: "tool_end", event_time_unix_ms: 1, tool: {} };
    await writeFile(path, lines(ended(1_500, 10), tool, ended(1_000, 900)));
    const { requests, report } = await readAll(path);
    assert.equal(report.format, "dynamo");
    assert.deepEqual(
      requests.map(({ arrivalMicros, promptTokens, outputTokens, blockTokens, model }) => [
        arrivalMicros,
        promptTokens,
        outputTokens,
        blockTokens,
        model,
      ]),
      [
        [0, 130, 20, 64, "m"],
        [500_000, 130, 20, 64, "m"],
      ],
    );
    assert.deepEqual(ids(requests[0]), [11, 12, 13]);
    assert.deepEqual([report.records, report.refused.size], [2, 0]);
  });

  test("a session's turns wait for one another, and for as long as they did; those that overlap do not", async () => {
    await using folder = await temporaryFolder();
    const parts = join(folder.path, "parts");
    await mkdir(parts);
    await writeFile(join(parts, "t.000000.jsonl"), lines(ended(1_000, 500, {}, "a"), ended(2_000, 500, {}, "a")));
    await writeFile(join(parts, "t.000001.jsonl"), lines(ended(2_100, 100, {}, "a")));
    const { requests } = await readAll(parts);
    assert.deepEqual(
      requests.map(({ session, turn, thinkMicros }) => [session, turn, thinkMicros]),
      [
        ["a", 0, undefined],
        ["a", 1, 500_000],
        ["a 2", 0, undefined],
      ],
    );
  });

  test("hashes of 64 bits, which lose their last bits in JSON, stay apart and safe", async () => {
    await using folder = await temporaryFolder();
    const path = join(folder.path, "t.jsonl");
    const hashes = "[18446744073709551615,9223372036854775808,5]";
    const text = lines(ended(1, 1)).replace("[11,12,13]", hashes);
    await writeFile(path, text);
    const blocks = ids((await readAll(path)).requests[0]);
    assert.equal(new Set(blocks).size, 3);
    assert.ok(blocks.every((id) => Number.isSafeInteger(id)));
  });

  test("what is missing is refused with its reason", async () => {
    await using folder = await temporaryFolder();
    const path = join(folder.path, "t.jsonl");
    const many = { trace_block_size: 64, input_length: 10, input_sequence_hashes: [1, 2] };
    await writeFile(path, lines(ended(1, 1), ended(2, 1, { replay: undefined }), ended(3, 1, { replay: many })));
    const { requests, report } = await readAll(path);
    assert.equal(requests.length, 1);
    assert.deepEqual(
      [...report.refused.keys()],
      [
        "request.replay is not there, so nothing is known of the prompt",
        "replay has more hashes than the prompt has blocks",
      ],
    );
  });
});

describe("a result of vLLM's own client", () => {
  const result = {
    date: "20260101-000000",
    model_id: "m",
    num_prompts: 3,
    request_throughput: 1.5,
    input_lens: [100, 200, 300],
    output_lens: [10, 0, 30],
    ttfts: [0.1, 0, 0.1],
    start_times: [50.5, 51, 50],
    errors: ["", "connection refused", ""],
  };

  test("has the requests that were sent, by their start; those that failed are left out", async () => {
    await using folder = await temporaryFolder();
    const path = join(folder.path, "result.json");
    await writeFile(path, JSON.stringify(result));
    const { requests, report } = await readAll(path);
    assert.equal(report.format, "vllm-bench");
    assert.deepEqual(
      requests.map(({ arrivalMicros, promptTokens, outputTokens }) => [arrivalMicros, promptTokens, outputTokens]),
      [
        [0, 300, 30],
        [500_000, 100, 10],
      ],
    );
    assert.deepEqual([...report.refused], [["it failed", 1]]);
  });

  test("without its details is refused with the flag that writes them", async () => {
    await using folder = await temporaryFolder();
    const path = join(folder.path, "result.json");
    await writeFile(path, JSON.stringify({ ...result, start_times: undefined }));
    await assert.rejects(readAll(path), /--save-detailed/);
    await writeFile(path, JSON.stringify({ ...result, output_lens: [1] }));
    await assert.rejects(readAll(path), /lists of one length, got 3, 3, 1/);
  });
});

test("OpenTelemetry's spans that count tokens are requests, whatever else there is", async () => {
  const attribute = (key: string, value: string) => ({
    key,
    value: /^\d+$/.test(value) ? { intValue: value } : { stringValue: value },
  });
  const span = (millis: number, ...attributes: readonly object[]) => ({
    startTimeUnixNano: String(1_700_000_000_000_000_000n + BigInt(millis) * 1_000_000n),
    attributes,
  });
  const batch = (...spans: readonly object[]) => ({ resourceSpans: [{ scopeSpans: [{ spans }] }] });
  const tokens = (input: string, output: string) => [
    attribute("gen_ai.request.model", "m"),
    attribute("gen_ai.usage.input_tokens", input),
    attribute("gen_ai.usage.output_tokens", output),
  ];
  await using folder = await temporaryFolder();
  const path = join(folder.path, "spans.jsonl");
  await writeFile(
    path,
    lines(
      batch(span(900, ...tokens("50", "7")), span(0, attribute("http.method", "GET"))),
      batch(span(400, ...tokens("30", "0")), span(500, ...tokens("0", "1"))),
    ),
  );
  const { requests, report } = await readAll(path);
  assert.equal(report.format, "otel-spans");
  assert.deepEqual(
    requests.map(({ arrivalMicros, promptTokens, outputTokens, model }) => [
      arrivalMicros,
      promptTokens,
      outputTokens,
      model,
    ]),
    [
      [0, 30, 1, "m"],
      [500_000, 50, 7, "m"],
    ],
  );
  assert.deepEqual([...report.refused.keys()], ["input_tokens is not a number of tokens >= 1"]);
});
