import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import { REQUEST_TOKENS_MAX as TOKENS_MAX } from "#core/base/units.ts";
import { readAll } from "./read-all.ts";
import { temporaryFolder } from "./temporary-folder.ts";

type Changes = Readonly<Record<string, unknown>>;

/** A format of one record a line: a record that is taken, and what makes it none, by the reason that the report names. */
interface LineFormat {
  readonly format: string;
  /** A line before all records. */
  readonly header?: string;
  readonly taken: (changes: Changes) => object;
  readonly refused: readonly (readonly [changes: Changes, reason: string])[];
  /** Changes with which a record is still taken. */
  readonly edges: readonly Changes[];
}

const NOT_TOKENS = [-1, 0.5, "7", null, TOKENS_MAX + 1];
const each = (key: string, values: readonly unknown[], reason: string) =>
  values.map((value) => [{ [key]: value }, reason] as const);

const WORKLOAD: LineFormat = {
  format: "workload",
  header: '{"format":"gnomon-workload","version":1}',
  taken: (changes) => ({
    arrivalMicros: 0,
    promptTokens: 20,
    outputTokens: 3,
    blockIds: [1, 2],
    blockTokens: 16,
    ...changes,
  }),
  refused: [
    ...each(
      "arrivalMicros",
      [undefined, -1, "0", 1e16],
      "arrivalMicros is not a number of microseconds from 0 to 285 years",
    ),
    ...each("promptTokens", [undefined, 0, ...NOT_TOKENS], "promptTokens is not a number of tokens >= 1"),
    ...each("outputTokens", [undefined, 0, ...NOT_TOKENS], "outputTokens is not a number of tokens >= 1"),
    ...each("blockIds", [7, ["1"], [-1], [0.5]], "blockIds is not a list of whole numbers"),
    ...each("blockTokens", [undefined, 0, -1], "blockTokens is not a number above 0"),
    ...each("thinkMicros", [-1, "1", 1e16], "thinkMicros is not a number of microseconds from 0 to 285 years"),
    ...each("joins", ["a", [1]], "joins is not a list of names"),
    ...each(
      "parent",
      [7, {}, { session: "a" }, { turn: 1 }, { session: 1, turn: 1 }],
      "parent is not a session and a turn",
    ),
  ],
  edges: [{ promptTokens: 1, blockIds: [0] }, { outputTokens: 1 }, { outputTokens: TOKENS_MAX }, { joins: [] }],
};

const TOKEN_IDS: LineFormat = {
  format: "token-ids",
  taken: (changes) => ({ input_toks: 2, output_toks: 3, arrival_time_ns: 0, input_tok_ids: [5, 6], ...changes }),
  refused: [
    ...each(
      "arrival_time_ns",
      [undefined, -1, "0", 1e19],
      "arrival_time_ns is not a number of nanoseconds from 0 to 285 years",
    ),
    ...each("output_toks", [undefined, ...NOT_TOKENS], "output_toks is not a number of tokens >= 0"),
    ...each("input_tok_ids", [undefined, [], [-1], [2 ** 31], "5"], "input_tok_ids is not a list of token ids"),
    ...each("input_toks", [1, "2"], "input_toks is not the number of input_tok_ids"),
  ],
  edges: [{ output_toks: 0 }, { input_tok_ids: [0, 2 ** 31 - 1] }, { input_toks: undefined }],
};

const MOONCAKE: LineFormat = {
  format: "mooncake",
  taken: (changes) => ({ timestamp: 0, input_length: 1_024, output_length: 5, hash_ids: [0, 1], ...changes }),
  refused: [
    ...each("timestamp", [undefined, -1, "0", 1e300], "timestamp is not a number of milliseconds from 0 to 285 years"),
    ...each("input_length", [undefined, 0, ...NOT_TOKENS], "input_length is not a number of tokens >= 1"),
    ...each("output_length", [undefined, ...NOT_TOKENS], "output_length is not a number of tokens >= 0"),
    ...each("hash_ids", [undefined, [0, -1], [0, "1"]], "hash_ids is not a list of whole numbers"),
    ...each("hash_ids", [[0], [0, 1, 2]], "hash_ids does not have one id per 512 tokens"),
  ],
  edges: [{ output_length: 0 }, { input_length: 513 }, { input_length: 512, hash_ids: [0] }],
};

const LMCACHE: LineFormat = {
  format: "lmcache",
  taken: (changes) => ({ timestamp: 0, input: "a", output: "b", session_id: "s", ...changes }),
  refused: [
    ...each("timestamp", [undefined, -1, "0", 1e16], "timestamp is not a number of microseconds from 0 to 285 years"),
    ...each("input", [undefined, 1], "input or output is not a text"),
    ...each("output", [undefined, 1], "input or output is not a text"),
    ...each("session_id", [undefined, "", 1], "session_id is not a text"),
    ...each("input", [""], "empty input"),
  ],
  edges: [{ output: "" }],
};

const DYNAMO_REQUEST = { request_received_ms: 5, output_tokens: 3, model: "m", total_time_ms: 9 };
const DYNAMO_REPLAY = { trace_block_size: 16, input_length: 20, input_sequence_hashes: [7, 8] };
const dynamo = (request: Changes, replay: Changes) => ({
  request: { ...DYNAMO_REQUEST, replay: { ...DYNAMO_REPLAY, ...replay }, ...request },
});
const eachDynamo = (part: "request" | "replay", key: string, values: readonly unknown[], reason: string) =>
  values.map((value) => {
    const change = { [key]: value };
    return [part === "request" ? dynamo(change, {}) : dynamo({}, change), reason] as const;
  });

const DYNAMO: LineFormat = {
  format: "dynamo",
  taken: (changes) => ({
    schema: "dynamo.request.trace.v1",
    event_type: "request_end",
    event_time_unix_ms: 14,
    ...dynamo({}, {}),
    ...changes,
  }),
  refused: [
    ...each("schema", ["dynamo.request.trace.v2"], "schema is not dynamo.request.trace.v1"),
    ...each("request", [7, []], "request is not an object"),
    ...eachDynamo(
      "request",
      "request_received_ms",
      [undefined, -1],
      "request.request_received_ms is not a number of milliseconds from 0 to 285 years",
    ),
    ...eachDynamo(
      "request",
      "replay",
      [undefined, 7],
      "request.replay is not there, so nothing is known of the prompt",
    ),
    ...eachDynamo(
      "request",
      "output_tokens",
      [undefined, ...NOT_TOKENS],
      "request.output_tokens is not a number of tokens",
    ),
    ...eachDynamo("replay", "trace_block_size", [0, 65_537, "16"], "replay.trace_block_size is not a number of tokens"),
    ...eachDynamo("replay", "input_length", [0, ...NOT_TOKENS], "replay.input_length is not a number of tokens >= 1"),
    ...eachDynamo(
      "replay",
      "input_sequence_hashes",
      [undefined, 7, ["7"], [7, -1]],
      "replay.input_sequence_hashes is not a list of numbers",
    ),
    ...eachDynamo("replay", "input_sequence_hashes", [[7, 8, 9]], "replay has more hashes than the prompt has blocks"),
  ],
  edges: [
    dynamo({ output_tokens: 0 }, {}),
    dynamo({}, { input_sequence_hashes: [7] }),
    dynamo({}, { trace_block_size: 65_536, input_sequence_hashes: [0] }),
  ],
};

for (const one of [WORKLOAD, TOKEN_IDS, MOONCAKE, LMCACHE, DYNAMO]) {
  test(`${one.format}: each broken field is refused by name, and its neighbours are taken`, async (t) => {
    const broken = one.refused.map(([changes]) => one.taken(changes));
    const whole = one.taken({});
    const { report } = await read(t, one, [whole, ...broken, ...one.edges.map(one.taken), whole]);
    const expected = new Map<string, number>();
    for (const [, reason] of one.refused) expected.set(reason, (expected.get(reason) ?? 0) + 1);
    assert.deepEqual(Object.fromEntries(report.refused), Object.fromEntries(expected));
    assert.deepEqual([report.format, report.accepted], [one.format, 2 + one.edges.length]);
    assert.match(report.places[0]!, new RegExp(`records\\.jsonl:${one.header === undefined ? 2 : 3}: `));
  });

  test(`${one.format}: a line that is no object is refused, the others are read`, async (t) => {
    const whole = JSON.stringify(one.taken({}));
    const { report } = await read(t, one, [], [whole, "{", "[1]", "7", whole]);
    assert.deepEqual(Object.fromEntries(report.refused), { "not JSON": 1, "not a JSON object": 2 });
    assert.deepEqual([report.records, report.accepted], [5, 2]);
  });
}

test("a WEKA session is refused by the part of it that is none", async (t) => {
  const folder = await temporaryFolder();
  t.after(() => folder[Symbol.asyncDispose]());
  const session = { id: "s", block_size: 64, requests: [{ t: 0, in: 64, out: 2, hash_ids: [1], type: "n" }] };
  const files: readonly (readonly [string, unknown])[] = [
    ["whole", session],
    ["requests", { ...session, requests: {} }],
    ["size-zero", { ...session, block_size: 0 }],
    ["size-text", { ...session, block_size: "64" }],
    ["calls", { ...session, id: "c", requests: [...session.requests, 7, { t: -1 }, { t: 1, type: "subagent" }] }],
    [
      "fields",
      {
        ...session,
        id: "f",
        requests: [
          { t: 0, in: 0 },
          { t: 0, in: 1 },
          { t: 0, in: 1, out: 1, hash_ids: [2 ** 26] },
        ],
      },
    ],
  ];
  for (const [name, value] of files) await writeFile(join(folder.path, `${name}.json`), JSON.stringify(value));
  await writeFile(join(folder.path, "torn.json"), '{"requests":[');
  const { report } = await readAll(folder.path);
  assert.deepEqual(Object.fromEntries(report.refused), {
    "request is not a JSON object": 1,
    "t is not a number of seconds from 0 to 285 years": 1,
    "sub-agent without a list of requests": 1,
    "in is not a number of tokens >= 1": 1,
    "out is not a number of tokens >= 0": 1,
    "hash_ids is not a list of whole numbers below 2^26": 1,
    "requests is not a list": 1,
    "block_size is not a whole number >= 1": 2,
    "not JSON": 1,
  });
});

async function read(t: TestContext, { header }: LineFormat, records: readonly object[], more: readonly string[] = []) {
  const folder = await temporaryFolder();
  t.after(() => folder[Symbol.asyncDispose]());
  const file = join(folder.path, "records.jsonl");
  const lines = [...(header === undefined ? [] : [header]), ...records.map((one) => JSON.stringify(one)), ...more];
  await writeFile(file, `${lines.join("\n")}\n`);
  return readAll(file);
}
