/**
 * How often a prediction interval holds what happens, and how far predictions are off: over drawn engines, whose speed
 * from run to run and within one is known, and over every pair of recorded runs of real engines.
 *
 *     npx node bench/coverage.ts [--seeds N] [--part drawn|order|real|short] [--block-tokens N] [--sequences-max N]
 *         [--batch-tokens-max N] [FOLDER ...]
 *
 *     npx node bench/coverage.ts --record URL --out MACHINE/SESSION --run NAME:RATE:COUNT ... [--seed N]
 *
 * The latter records runs of a real engine at URL as such traces.
 *
 * Folders: further traces as `gnomon serve --record` wrote them, MACHINE/SESSION/RUN each: runs of one machine are predicted
 * from one another. The flags state what they do not.
 * The given runs are those of BENCH_SHARED (default ../shared).
 */
import { basename, dirname, join } from "node:path";
import { parseArgs } from "node:util";
import { drawnStudy } from "./coverage/drawn-study.ts";
import { orderStudy } from "./coverage/order-study.ts";
import { realPairs } from "./coverage/real-pairs.ts";
import { askedRun, recordRuns } from "./coverage/record-runs.ts";
import { givenCpuRuns, shortSources } from "./coverage/short-sources.ts";

const { values, positionals } = parseArgs({
  options: {
    seeds: { type: "string", default: "16" },
    part: { type: "string" },
    record: { type: "string" },
    out: { type: "string" },
    run: { type: "string", multiple: true, default: [] },
    seed: { type: "string", default: "1" },
    "block-tokens": { type: "string" },
    "sequences-max": { type: "string" },
    "batch-tokens-max": { type: "string" },
  },
  allowPositionals: true,
});
if (values.record !== undefined) {
  const runs = values.run.flatMap((text) => askedRun(text) ?? []);
  if (values.out === undefined || runs.length === 0 || runs.length < values.run.length) {
    console.error("coverage: expected --record with --out and --run NAME:RATE:COUNT");
    process.exit(2);
  }
  await recordRuns(values.record, values.out, runs, Number(values.seed));
  process.exit(0);
}
const traces = join(process.env["BENCH_SHARED"] ?? "../shared", "traces");
const seeds = Number(values.seeds);
const given = (name: "block-tokens" | "sequences-max" | "batch-tokens-max") =>
  values[name] === undefined ? undefined : Number(values[name]);
const sizes = {
  blockTokens: given("block-tokens"),
  sequencesMax: given("sequences-max"),
  batchTokensMax: given("batch-tokens-max"),
};
const flags = Object.fromEntries(Object.entries(sizes).filter(([, value]) => value !== undefined));

if ((values.part ?? "drawn") === "drawn") await drawnStudy(seeds);
if ((values.part ?? "order") === "order") await orderStudy(seeds);
if ((values.part ?? "short") === "short") await shortSources(givenCpuRuns(traces));
if ((values.part ?? "real") === "real")
  await realPairs([
    {
      name: "one vLLM on a CPU, as given",
      folders: givenCpuRuns(traces),
      flags: { sizes: "trace" },
    },
    ...["RTX4090_Llama-3.1-8B", "RTXPRO6000_Qwen3-32B"].map((name) => ({
      name,
      folders: [join(traces, "vllm-runs", name)],
      flags: { sizes: "trace" as const },
    })),
    ...[...Map.groupBy(positionals, (one) => basename(dirname(dirname(one))))].map(([name, folders]) => ({
      name,
      folders,
      flags: { ...flags, sizes: "trace" as const },
    })),
  ]);
