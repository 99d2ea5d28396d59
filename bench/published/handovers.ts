import { readFileSync } from "node:fs";
import { join } from "node:path";
import { pdSpec, withRoles } from "#cli/flag/architecture-flags.ts";
import { loadProfile } from "#config/profile-file.ts";
import type { Micros } from "#core/base/units.ts";
import { HARDWARE } from "#engine/hardware.ts";
import { modelledEngine } from "#engine/modelled-engine.ts";
import { NO_LATENCY } from "#sim/setting/simulation-options.ts";
import { simulate } from "#sim/simulate.ts";
import { PLAIN_CLUSTER } from "../plain-cluster.ts";
import { type ListedArrival, ListedArrivals } from "../simulate/listed-arrivals.ts";
import { modelNamed } from "./models.ts";
import { tracedArrivals, type TracedArrival } from "./runs.ts";

/** A published run whose prompts one engine computed and another answered; means in milliseconds. */
export interface HandoverRun {
  readonly source: string;
  readonly group: string;
  readonly board: string;
  readonly eager: boolean;
  readonly model: string;
  readonly prefillEngines: number;
  readonly tp: number;
  readonly arrivals: readonly TracedArrival[];
  readonly ttftMillis: number | undefined;
  readonly tpotMillis: number;
}

/** Who measured. All are of vLLM before it scheduled ahead by default. */
const SOURCES: Readonly<Record<string, string>> = {
  servingsim:
    "github.com/casys-kaist/LLMServingSim ispass26-artifact f4ab208, evaluation/figure_8/reference/PDD_latency.tsv",
  "dynamo-402":
    "github.com/ai-dynamo/dynamo/issues/402 (8 H100: four engines for prompts, one on four boards that answers; at the rate that " +
    "was served; TTFT is of a queue before four other engines, and left out)",
  "dynamo-2552": "github.com/ai-dynamo/dynamo/issues/2552 (2025-08-29, as 402)",
  "vllm-18242": "github.com/vllm-project/vllm/pull/18242 (2025-06-16, P2pNcclConnector, 1P + 1D)",
  "lmcache-528":
    "github.com/LMCache/LMCache/pull/528 (2025-04-25, over NIXL, 1P + 1D; the load is taken to be that of the benchmark " +
    "published with it: 3.6/s of 8,000 + 200)",
};

const REQUESTS = 200;

/**
 * Where `gnomon` would stand these runs are taken to have had a proxy as in vLLM's examples: one process of Python (FastAPI
 * and httpx) that asks the one engine and then the other. One of the same steps as that of its NIXL connector
 * (tests/v1/kv_connector/nixl_integration/toy_proxy_server.py, 030ea52) was measured before engines that answer at once, one
 * request at a time: the first byte 3.2 ms later than without it at best, 4.4 to 5.4 ms of CPU a request, as much with
 * prompts of 32,000 characters. Nothing of it is fitted; what it is slower while it relays other answers is left out.
 */
const PROXY_WAY_MICROS: Micros = 1_600;

export function handoverRuns(): HandoverRun[] {
  const [, ...lines] = readFileSync(join(import.meta.dirname, "handovers.csv"), "utf8")
    .trim()
    .split("\n");
  return lines.map((line) => {
    const cells = line.split(",") as [string, ...string[]];
    const [source, group, board, eager, model, prefillEngines, tp, load, prompt, output, ttft, tpot] = cells;
    const [kind, value = ""] = load!.split(":");
    return {
      source,
      group: group!,
      board: board!,
      eager: eager === "eager",
      model: model!,
      prefillEngines: Number(prefillEngines),
      tp: Number(tp),
      arrivals:
        kind === "trace"
          ? tracedArrivals(value)
          : Array.from({ length: REQUESTS }, (_, i) => ({
              atMicros: Math.round((i * 1e6) / Number(value)),
              promptTokens: Number(prompt),
              outputTokens: Number(output),
            })),
      ttftMillis: ttft === "-" ? undefined : Number(ttft),
      tpotMillis: Number(tpot),
    };
  });
}

interface Means {
  readonly ttftMillis: number;
  readonly tpotMillis: number;
}

/** What the simulator makes of it; `connectorMicros` in place of the product's. */
export function handedOver(run: HandoverRun, connectorMicros?: Micros): Means {
  const config = modelledEngine(modelNamed(run.model), HARDWARE[run.board]!, {
    tensorParallel: run.tp,
    utilization: 0.9,
    eager: run.eager,
    asyncScheduling: false,
    connector: true,
    ...(connectorMicros !== undefined && { connectorMicros }),
  });
  const { blockTokens } = config;
  const endpoints = Array.from({ length: run.prefillEngines + 1 }, (_, i) => ({
    id: `engine_${i}`,
    models: [],
    labels: {},
    kvCapacityTokens: (config.kvBlocks - 1) * blockTokens,
    concurrencyMax: config.sequencesMax,
  }));
  const result = simulate({
    ...PLAIN_CLUSTER,
    latency: { ...NO_LATENCY, requestMicros: PROXY_WAY_MICROS },
    router: {
      seed: 1,
      profiles: { pd: pdSpec(loadProfile("gnomon-pd").spec, { colocateBelowTokens: 0 }) },
      defaultProfile: "pd",
      blockTokens,
      staleAfterMicros: 3_000_000,
    },
    engines: withRoles(endpoints, run.prefillEngines).map((endpoint) => ({ config, endpoint })),
    signals: { mode: "scrape", intervalMicros: 1_000_000, phase: "spread", delayMicros: 5_000, lossShare: 0 },
    arrivals: new ListedArrivals(run.arrivals.map((arrival, number) => listedOf(arrival, number, blockTokens))),
  });
  const { ttftMicros, tpotMicros } = result.metrics;
  return { ttftMillis: ttftMicros["all"]!.mean / 1e3, tpotMillis: tpotMicros["all"]!.mean / 1e3 };
}

function listedOf(
  { atMicros, promptTokens, outputTokens }: TracedArrival,
  number: number,
  blockTokens: number,
): ListedArrival {
  const length = Math.floor(promptTokens / blockTokens);
  const hashes = Int32Array.from({ length: 2 * length }, (_, i) => (i % 2 === 0 ? number : i));
  return {
    route: {
      id: `request_${number}`,
      model: "",
      tenant: "",
      session: "",
      sloClass: "",
      priority: 0,
      promptTokens,
      promptTokensExact: true,
      outputTokensMax: undefined,
      sequences: 1,
      blocks: { hashes, length, blockTokens },
      profile: "",
    },
    arrivalAt: Math.round(atMicros),
    outputTokens,
    deadlineAt: Infinity,
  };
}

/** One further board's wait that the runs on several boards show, by secants of their mean error. */
function boardMicrosOf(runs: readonly HandoverRun[]): Micros {
  const several = runs.filter(({ tp }) => tp > 1);
  const offAt = (micros: Micros) =>
    several.reduce((sum, run) => {
      const { tpotMillis } = handedOver(run, Math.round(micros * (run.tp - 1)));
      return sum + Math.log(tpotMillis / run.tpotMillis);
    }, 0) / several.length;
  let [low, lowOff] = [0, offAt(0)];
  let [high, highOff] = [GUESS_MICROS, offAt(GUESS_MICROS)];
  for (let i = 0; i < 2 && highOff !== lowOff; i++) {
    const next = Math.max(0, high - (highOff * (high - low)) / (highOff - lowOff));
    [low, lowOff, high, highOff] = [high, highOff, next, offAt(next)];
  }
  return high;
}

const GUESS_MICROS = 1_500;

/** Each group by the wait that the others show, beside none at all. */
export function printHandovers(): void {
  const runs = handoverRuns();
  console.log(
    "\n| prompts elsewhere | TTFT ms | predicted | TPOT ms | predicted | without the wait | µs a board, by the others |\n|---|---:|---:|---:|---:|---:|---:|",
  );
  for (const run of runs) {
    const micros = boardMicrosOf(runs.filter(({ group }) => group !== run.group));
    const means = handedOver(run, Math.round(micros * (run.tp - 1)));
    const bare = handedOver(run, 0);
    const ttft =
      run.ttftMillis === undefined ? ["-", "-"] : [run.ttftMillis.toFixed(1), cell(means.ttftMillis, run.ttftMillis)];
    const tpot = [
      run.tpotMillis.toFixed(2),
      cell(means.tpotMillis, run.tpotMillis),
      cell(bare.tpotMillis, run.tpotMillis),
    ];
    console.log(
      `| ${run.group}, ${run.source} | ${[...ttft, ...tpot].join(" | ")} | ${run.tp > 1 ? micros.toFixed(0) : "-"} |`,
    );
  }
  console.log(`\nall together: ${boardMicrosOf(runs).toFixed(0)} µs`);
  for (const [name, where] of Object.entries(SOURCES)) console.log(`${name}: ${where}`);
}

function cell(predicted: number, published: number): string {
  const share = 100 * (predicted / published - 1);
  return `${predicted.toFixed(2)} (${share > 0 ? "+" : ""}${share.toFixed(1)} %)`;
}
