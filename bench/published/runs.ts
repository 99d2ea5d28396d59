import { readFileSync } from "node:fs";
import { join } from "node:path";

/** One published measurement of vLLM, means in milliseconds. */
export interface PublishedRun {
  readonly source: string;
  readonly run: string;
  readonly board: string;
  /** Without CUDA graphs. */
  readonly eager: boolean;
  readonly model: string;
  readonly tp: number;
  readonly batchTokensMax: number;
  readonly load: Load;
  readonly promptTokens: number;
  /** Different prompts, asked in turn; 0 where each is its own. All but the first time they are cached. */
  readonly prompts: number;
  readonly outputTokens: number;
  /** Undefined where it was not published, or its prompts were cached in part. */
  readonly ttftMillis: number | undefined;
  /** Requests waited for others: the mean TTFT is one draw of a queue (~ in the table). */
  readonly saturated: boolean;
  readonly tpotMillis: number;
}

/** Evenly spaced arrivals a second, users who ask again when they are answered, or recorded arrivals (every n-th). */
export type Load =
  | { readonly kind: "rate"; readonly perSecond: number }
  | { readonly kind: "users"; readonly count: number }
  | { readonly kind: "trace"; readonly name: string; readonly every: number };

/** Who measured, with what. Figures alone were taken over. */
export const SOURCES: Readonly<Record<string, string>> = {
  "blis-training":
    "github.com/inference-sim/training ed5c1d2, default_args/*/results (vLLM 0.15, inference-perf, constant rate)",
  "blis-validation":
    "github.com/inference-sim/sim-to-real-accuracy-validation 7f3b270, results_iter36/error_records.csv, column actual (vLLM 0.15.1)",
  "blis-training-set":
    "github.com/inference-sim/sim-to-real-accuracy-validation dcec3fd, results_trainval/error_records.csv, column actual (vLLM 0.15.1)",
  servingsim:
    "github.com/casys-kaist/LLMServingSim ispass26-artifact f4ab208, evaluation/figure_8/reference (300 ShareGPT requests at 10/s; " +
    "the artifact's own logs are of vLLM 0.13 with --enforce-eager)",
  "tt-143": "github.com/tenstorrent/tt-inference-server/issues/143 (2025-04-01, vLLM on 2 H100)",
  "tt-340": "github.com/tenstorrent/tt-inference-server/issues/340 (2025-06/07, vLLM on A100)",
  "tt-356": "github.com/tenstorrent/tt-inference-server/issues/356 (2025-07-10, vLLM on 8 H100, AWQ)",
  "tt-394": "github.com/tenstorrent/tt-inference-server/issues/394 (2025-11-12, vLLM on RTX 4090)",
  "recipes-431":
    "github.com/vllm-project/recipes/pull/431 (2026-04-30, vLLM ROCm on MI300X, Qwen3Guard-Gen-8B, 100 requests)",
  "recipes-ministral":
    "github.com/vllm-project/recipes 8959cf6, models/mistralai/Ministral-3-14B-Instruct-2512.yaml (vLLM ROCm on MI300X, 100 requests)",
  "recipes-deepseek":
    "github.com/vllm-project/recipes 8959cf6, DeepSeek/DeepSeek-V3.md (DeepSeek-R1-0528 FP8 on 8 H200, experts apart; its one " +
    "request was the first one, so that its TTFT counts compiling)",
  "recipes-443": "github.com/vllm-project/recipes/pull/443 (2026-05-06, vLLM ROCm on MI300X, 100 requests)",
};

/** All of runs.csv. */
export function publishedRuns(): PublishedRun[] {
  return tableOf("runs.csv").map((cells) => {
    const [source, run, board, model, tp, batchTokensMax, load, prompt, prompts, output, ttft, tpot] = cells;
    return {
      source: source!,
      run: run!,
      board: board!.replace(/-eager$/, ""),
      eager: board!.endsWith("-eager"),
      model: model!,
      tp: Number(tp),
      batchTokensMax: Number(batchTokensMax),
      load: loadOf(load!),
      promptTokens: Number(prompt),
      prompts: Number(prompts),
      outputTokens: Number(output),
      ttftMillis: ttft === "-" ? undefined : Number(ttft!.replace("~", "")),
      saturated: ttft!.startsWith("~"),
      tpotMillis: Number(tpot),
    };
  });
}

export interface TracedArrival {
  readonly atMicros: number;
  readonly promptTokens: number;
  readonly outputTokens: number;
}

/** Arrivals of a recorded workload: LLMServingSim's of ShareGPT, lengths and times alone. */
export function tracedArrivals(name: string): TracedArrival[] {
  return tableOf(`${name}.csv`).map(([at, promptTokens, outputTokens]) => ({
    atMicros: Number(at) * 1000,
    promptTokens: Number(promptTokens),
    outputTokens: Number(outputTokens),
  }));
}

function loadOf(text: string): Load {
  const [kind, value = ""] = text.split(":");
  if (kind === "rate") return { kind, perSecond: Number(value) };
  if (kind === "users") return { kind, count: Number(value) };
  return { kind: "trace", name: value, every: kind === "half" ? 2 : 1 };
}

function tableOf(file: string): string[][] {
  const [, ...lines] = readFileSync(join(import.meta.dirname, file), "utf8")
    .trim()
    .split("\n");
  return lines.map((line) => line.split(","));
}
