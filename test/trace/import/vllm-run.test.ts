import assert from "node:assert/strict";
import { cp, mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { IMPORT_DEFAULTS, type ImportOptions } from "#trace/import/import-options.ts";
import { ImportError, ImportReport } from "#trace/import/import-report.ts";
import { openVllmRun } from "#trace/import/vllm-run.ts";
import type { TrafficRequest } from "#trace/transform/traffic.ts";
import { golden, ids } from "./read-all.ts";
import { temporaryFolder } from "./temporary-folder.ts";

async function readRun(folder: string, options: Partial<ImportOptions> = {}) {
  const report = new ImportReport(folder, "vllm-run", false);
  const { traffic, ...run } = await openVllmRun(folder, { ...IMPORT_DEFAULTS, ...options }, report);
  const all: TrafficRequest[] = [];
  for await (const one of traffic) all.push(one);
  return { run, all, report };
}

const ENGINE_TIMED = golden("vllm-engine-timed");
const CLIENT_TIMED = golden("vllm-client-timed");

test("a run that the engine timed: its clock is set to the client's, and prompts are known by their blocks", async () => {
  const { run, all, report } = await readRun(ENGINE_TIMED);
  assert.deepEqual(run.engine, {
    blockTokens: 16,
    kvBlocks: 200,
    sequencesMax: 8,
    batchTokensMax: 512,
    prefixCaching: true,
    asyncScheduling: true,
  });
  assert.equal(run.model, "example/tiny");
  assert.equal(run.startWallMicros, 1_700_000_000_000_000);
  assert.match(run.notes.join("\n"), /asyncScheduling true: not stated, the default of vLLM 0\.19\.0/);
  assert.deepEqual(
    all.map(({ id }) => id),
    ["bench-0", "bench-1", "bench-3", "bench-2", "bench-5"],
    "in order of arrival",
  );
  assert.deepEqual(
    [...report.refused.keys()],
    ["input_toks is not the number of input_tok_ids in its line of workload.jsonl"],
  );
  const [first, second] = all;
  // The least distance between the clocks is that of the first request, whose time in the queue so is 0.
  assert.deepEqual([first?.request.arrivalMicros, first?.observed?.ttftMicros], [0, 30_000]);
  assert.deepEqual([second?.request.arrivalMicros, second?.observed?.ttftMicros], [50_000, 30_500]);
  assert.equal(second?.observed?.e2eMicros, 30_500 + 10_000 * 4);
  const third = all.find(({ id }) => id === "bench-2")!.request;
  assert.deepEqual(ids(third).slice(0, 2), ids(first?.request).slice(0, 2), "32 of 40 shared tokens are full blocks");
  assert.notEqual(ids(third)[2], ids(first?.request)[2]);
  assert.equal(ids(third).length, Math.floor(third.promptTokens / 16));
});

test("a run that its client timed: prompts by the names of their parts, and what failed is reported", async () => {
  const { run, all, report } = await readRun(CLIENT_TIMED);
  assert.equal(run.engine.asyncScheduling, false);
  assert.equal(run.engine.kvBlocks, 640);
  assert.equal(run.model, "", "words that are no name");
  assert.equal(run.startWallMicros, 1_700_000_000_500_000);
  assert.deepEqual(
    all.map(({ observed }) => [observed?.outcome, observed?.cachedTokens]),
    [
      ["ok", 64],
      ["ok", 96],
      ["ok", 128],
      ["failed", 0],
    ],
  );
  const [first, second, again] = all.map(({ request }) => ids(request));
  assert.deepEqual(first, again, "the same prompt");
  assert.deepEqual(second?.slice(0, 3), first?.slice(0, 3), "the same group");
  assert.notEqual(second?.[3], first?.[3]);
  assert.equal(all[0]?.observed?.ttftMicros, 40_000);
  assert.equal(all[0]?.observed?.e2eMicros, 80_000, "to the last chunk");
  assert.deepEqual(Object.fromEntries(report.refused), {
    "request id that was given already": 1,
    "completion_tokens is not a number of tokens >= 1": 1,
  });
});

/** A run that its client timed, of the lines and with the settings of its engine. */
async function clientRun(folder: string, engine: object, requests: readonly object[]): Promise<string> {
  await writeFile(join(folder, "meta.json"), JSON.stringify({ engine }));
  await writeFile(join(folder, "requests.jsonl"), requests.map((one) => `${JSON.stringify(one)}\n`).join(""));
  return folder;
}

const SENT = { status: 200, prompt_tokens: 40, completion_tokens: 3, first_chunk: 0.2, done: 0.4, send: 0.1 };

test("requests that their clients took back are load, not answers, also those that never had a token", async () => {
  await using folder = await temporaryFolder();
  const { first_chunk: _, ...silent } = { ...SENT, completion_tokens: 0, aborted_at: 0.4 };
  const { all, report } = await readRun(
    await clientRun(folder.path, {}, [
      { ...SENT, id: 0 },
      { ...SENT, id: 1, finish_reason: null, aborted_at: 0.4 },
      { ...silent, id: 2 },
    ]),
  );
  assert.deepEqual(
    all.map(({ request, observed }) => [observed?.outcome, request.outputTokens, observed?.ttftMicros]),
    [
      ["ok", 3, 100_000],
      ["failed", 3, 100_000],
      ["failed", 1, NaN],
    ],
  );
  assert.equal(report.refused.size, 0);
});

test("switches may be given as words, fewer active sequences win, and what is not simulated is reported", async () => {
  await using folder = await temporaryFolder();
  const engineOf = async (engine: object) => (await readRun(await clientRun(folder.path, engine, [SENT]))).run;
  const told = await engineOf({ chunked_prefill: "default (on)", prefix_caching: "off", scheduling_policy: "fcfs" });
  assert.deepEqual(told.engine, { chunkedPrefill: true, prefixCaching: false });
  assert.doesNotMatch(told.notes.join("\n"), /not simulated/);
  assert.match(told.notes.join("\n"), /does not state block_size, num_gpu_blocks, max_num_seqs/);
  const other = await engineOf({
    enable_chunked_prefill: false,
    max_num_seqs: 16,
    max_num_active_seqs: 8,
    scheduling_policy: "priority",
    watermark: 0.05,
  });
  assert.deepEqual(other.engine, { chunkedPrefill: false, sequencesMax: 8 });
  assert.match(other.notes.join("\n"), /not simulated: watermark 0\.05, scheduling_policy "priority"/);
  await assert.rejects(engineOf({ chunked_prefill: "sometimes" }), /enable_chunked_prefill: expected true or false/);
});

test("ranks behind one address are read wherever a benchmark writes them, and those behind others are not its own", async () => {
  await using folder = await temporaryFolder();
  const ranksOf = async (meta: object) => {
    await clientRun(folder.path, {}, [SENT]);
    await writeFile(join(folder.path, "meta.json"), JSON.stringify(meta));
    const { run } = await readRun(folder.path);
    return [run.engine.dataParallel, run.notes.filter((note) => note.startsWith("NOT SIMULATED")).length];
  };
  assert.deepEqual(await ranksOf({ engine: { data_parallel_size: 2 } }), [2, 0]);
  assert.deepEqual(await ranksOf({ engine_kwargs: { data_parallel_size: 4, enable_expert_parallel: false } }), [4, 0]);
  assert.deepEqual(await ranksOf({ engine_kwargs: { data_parallel_size: 1 } }), [undefined, 0]);
  const resolved = (parallel_config: object) => ({ resolved_config: { parallel_config } });
  assert.deepEqual(await ranksOf(resolved({ data_parallel_size: 2, is_moe_model: true })), [2, 1]);
  assert.deepEqual(await ranksOf(resolved({ data_parallel_size: 2, enable_expert_parallel: true })), [2, 2]);
  assert.deepEqual(await ranksOf(resolved({ data_parallel_size: 8, data_parallel_external_lb: true })), [undefined, 0]);
  assert.deepEqual(
    await ranksOf(resolved({ data_parallel_size: 8, data_parallel_size_local: 2, data_parallel_hybrid_lb: true })),
    [2, 0],
  );
  await assert.rejects(ranksOf({ engine: { data_parallel_size: 1.5 } }), /data_parallel_size: expected a whole number/);
});

test("a run of another kind of engine is refused by the setting that makes it one", async () => {
  await using folder = await temporaryFolder();
  for (const [engine, message] of [
    [{ pipeline_parallel_size: 2 }, /meta\.json: pipeline_parallel_size: expected 1, got 2: .* not simulated/],
    [{ decode_context_parallel_size: 2 }, /decode_context_parallel_size: expected 1, got 2/],
    [{ speculative_config: { method: "ngram" } }, /speculative_config: expected null, got \{"method":"ngram"\}/],
    [{ kv_transfer_config: { kv_role: "kv_both" } }, /kv_transfer_config: expected null/],
  ] as const) {
    await assert.rejects(readRun(await clientRun(folder.path, engine, [SENT])), message);
  }
  await readRun(await clientRun(folder.path, { pipeline_parallel_size: 1, speculative_config: null }, [SENT]));
});

test("block ids reveal nothing without their key", async () => {
  const idsWith = async (key: string) => (await readRun(ENGINE_TIMED, { key })).all.map(({ request }) => ids(request));
  assert.deepEqual(await idsWith("a"), await idsWith("a"));
  const [a, b] = [await idsWith("a"), await idsWith("b")];
  assert.ok(a.flat().every((id) => !b.flat().includes(id)));
});

test("what a run lacks, or states wrongly, is reported by file", async () => {
  await using folder = await temporaryFolder();
  const broken = async (change: (run: string) => Promise<void>) => {
    const run = join(folder.path, "run");
    await cp(ENGINE_TIMED, run, { recursive: true });
    await change(run);
    try {
      await readRun(run);
    } catch (error) {
      assert.ok(error instanceof ImportError, String(error));
      return error.message;
    } finally {
      await rm(run, { recursive: true });
    }
    return "nothing";
  };
  assert.match(await broken((run) => rm(join(run, "workload.jsonl"))), /workload\.jsonl: expected the prompts/);
  assert.match(await broken((run) => rm(join(run, "requests.jsonl"))), /requests\.jsonl: expected the requests/);
  assert.match(await broken((run) => rm(join(run, "meta.json"))), /meta\.json: expected the settings/);
  assert.match(await broken((run) => writeFile(join(run, "meta.json"), "{")), /meta\.json: .* is not JSON/);
  assert.match(
    await broken(async (run) => {
      const text = await readFile(join(run, "meta.json"), "utf8");
      await writeFile(join(run, "meta.json"), text.replace('"block_size": 16', '"block_size": "big"'));
    }),
    /meta\.json: block_size: expected a whole number of 1 to 4096, got "big"/,
  );
  assert.match(
    await broken((run) => writeFile(join(run, "meta.json"), '{"num_gpu_blocks": 900000000000}')),
    /meta\.json: num_gpu_blocks: expected a whole number of 2 to 100000000, got 900000000000/,
  );
  assert.match(
    await broken((run) => writeFile(join(run, "requests.jsonl"), '{"input":1}\n')),
    /requests\.jsonl: expected lines with arrival_time/,
  );
});

test("settings that are a folder are refused by their path", async () => {
  await using folder = await temporaryFolder();
  await cp(ENGINE_TIMED, folder.path, { recursive: true });
  await rm(join(folder.path, "meta.json"));
  await mkdir(join(folder.path, "meta.json"));
  await assert.rejects(readRun(folder.path), (error) => {
    assert.ok(error instanceof ImportError, String(error));
    assert.match(error.message, /meta\.json: expected a file, got a folder$/);
    return true;
  });
});
