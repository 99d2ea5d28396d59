import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { randomFor } from "#core/base/random.ts";
import type { EngineConfig } from "#engine/config.ts";
import type { Evidence, Served } from "#shadow/calibrate/evidence.ts";
import { forcedReplay } from "#shadow/calibrate/forced-replay.ts";

export interface RunTraffic {
  readonly requests: number;
  readonly gapMicros: number;
  readonly seed: number;
  /** All prompts and answers of one length. */
  readonly equal?: boolean;
  /** Wall time of its beginning. */
  readonly wallSeconds?: number;
}

const GROUPS = 5;

/** Writes a run as a client of a vLLM with this engine would have logged it. */
export function writeVllmRun(folder: string, truth: EngineConfig, traffic: RunTraffic): void {
  const random = randomFor(traffic.seed, 1);
  const uniform = () => random.below(1 << 20) / (1 << 20);
  let at = 50_000;
  const sent = Array.from({ length: traffic.requests }, (_, i) => {
    at += 1 + Math.floor(2 * traffic.gapMicros * uniform());
    const group = random.below(GROUPS);
    const prefix = 64 * (1 + group);
    const own = traffic.equal === true ? 200 : 20 + Math.floor(700 * uniform() ** 2);
    const output = traffic.equal === true ? 20 : 4 + Math.floor(100 * uniform());
    return { i, at, group, prefix: traffic.equal === true ? 0 : prefix, own, output };
  });
  const rows = sent.map(({ i, at: arrivalAt, group, prefix, own, output }): Served => {
    const promptTokens = prefix + own;
    const hashes = new Int32Array(2 * Math.floor(promptTokens / truth.blockTokens));
    for (let block = 0; 2 * block < hashes.length; block++) {
      hashes[2 * block] = (block + 1) * truth.blockTokens <= prefix ? group : GROUPS + i;
      hashes[2 * block + 1] = block;
    }
    const unknown = { cachedTokens: NaN, ttftMicros: NaN, e2eMicros: NaN };
    return { ...unknown, arrivalAt, endpoint: 0, promptTokens, outputTokens: output, ok: true, hashes };
  });
  const evidence: Evidence = { endpoints: ["one"], rows, left: {} };
  const seen = forcedReplay(evidence, truth);
  const lines = sent.map(({ i, at: arrivalAt, group, prefix, own, output }) => {
    const first = (arrivalAt + seen.ttftMicros[i]!) / 1e6;
    const last = (arrivalAt + seen.e2eMicros[i]!) / 1e6;
    return JSON.stringify({
      id: i,
      group,
      prefix_len: prefix,
      unique_id: 1000 + i,
      unique_len: own,
      send: arrivalAt / 1e6,
      status: 200,
      finish_reason: "length",
      prompt_tokens: prefix + own,
      completion_tokens: output,
      cached_tokens: seen.cachedTokens[i]!,
      first_chunk: first,
      done: last,
      chunks: [
        [first, 1],
        [last, output],
      ],
    });
  });
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, "requests.jsonl"), `${lines.join("\n")}\n`);
  const engine = {
    vllm: "0.32.0",
    block_size: truth.blockTokens,
    num_gpu_blocks: truth.kvBlocks,
    max_num_seqs: truth.sequencesMax,
    max_num_batched_tokens: truth.batchTokensMax,
    max_model_len: truth.modelTokensMax,
    prefix_caching: true,
    async_scheduling: truth.asyncScheduling,
  };
  writeFileSync(
    join(folder, "meta.json"),
    JSON.stringify({ wall_start_unix: traffic.wallSeconds ?? 1_700_000_000, engine }),
  );
}
