import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { stringify } from "yaml";
import { median } from "#core/base/quantile.ts";
import type { EngineConfig } from "#engine/config.ts";
import { cpuSecondsOf } from "../child-cpu.ts";

const ROOT = join(import.meta.dirname, "../..");
const INSTANCES = 16;
/** Of those under which the command simulates; BLIS has its own default scorers, which `weighted` is. */
const PROFILES = ["weighted", "gnomon", "llm-d"];
/** 70 % of what the engines can do. */
const RATE = 672;
const SEED = 42;

export interface BlisOptions {
  /** inference-sim's sources, with the program `blis` built in them. */
  readonly folder: string;
  readonly requests: number;
  readonly rounds: number;
  /** BLIS with gauges of 50 ms ago, its default, takes minutes a run. */
  readonly staleRounds: number;
  readonly engine: EngineConfig;
}

/** What BLIS takes beside the command, in CPU time of runs one right after the other: only the ratio is another machine's too. */
export function besideBlis({ folder, requests, rounds, staleRounds, engine }: BlisOptions): void {
  const program = join(folder, "blis");
  if (!existsSync(program))
    throw new Error(`${program}: expected BLIS, built by \`go build -o blis .\` in the sources of inference-sim`);
  const files = mkdtempSync(join(tmpdir(), "gnomon-blis-"));
  try {
    const workload = join(files, "workload.yaml");
    const engineFile = join(files, "engine.yaml");
    writeFileSync(workload, stringify(workloadOf(requests)));
    const { kvBlocks, stepTime } = engine;
    writeFileSync(engineFile, stringify({ kvBlocks, stepTime }));
    const own = (profile: string) => {
      const asked = ["--num-instances", String(INSTANCES), "--workload-spec", workload, "--engine", engineFile];
      const command = [process.execPath, join(ROOT, "bin/gnomon.js"), "simulate", ...asked, "--profile", profile];
      return () => cpuSecondsOf(command, files);
    };
    const blis = (...signals: readonly string[]) => {
      const command = [program, "run", ...blisFlags(engine, requests), ...signals];
      return () => cpuSecondsOf(command, folder);
    };
    const atOnce = blis("--snapshot-refresh-interval", "0", "--cache-signal-delay", "0");
    // What is compiled is kept for the runs that count.
    own("weighted")();
    print("of that moment", rounds, PROFILES, own, atOnce);
    if (staleRounds > 0) print("of 50 ms ago", staleRounds, PROFILES.slice(0, 1), own, blis());
  } finally {
    rmSync(files, { recursive: true, force: true });
  }
}

/** Each round has one run of each, one right after the other, in changing order. */
function print(
  gauges: string,
  rounds: number,
  profiles: readonly string[],
  own: (profile: string) => () => number,
  blis: () => number,
): void {
  const theirs: number[] = [];
  const ours = profiles.map((): number[] => []);
  for (let round = 0; round < rounds; round++) {
    const runs = [() => theirs.push(blis()), ...profiles.map((profile, i) => () => ours[i]!.push(own(profile)()))];
    for (const run of round % 2 === 0 ? runs : runs.toReversed()) run();
  }
  process.stdout.write(`BLIS, gauges ${gauges}: ${median(theirs).toFixed(1)} s of CPU, median of ${rounds}\n`);
  profiles.forEach((profile, i) => {
    const ratios = theirs.map((seconds, round) => seconds / ours[i]![round]!);
    const range = `${Math.min(...ratios).toFixed(1)} to ${Math.max(...ratios).toFixed(1)}`;
    const line = `${profile}: ${median(ours[i]!).toFixed(2)} s, BLIS takes ${median(ratios).toFixed(1)} times that (${range})`;
    process.stdout.write(`${line}\n`);
  });
}

function workloadOf(requests: number) {
  return {
    conversations: requests,
    arrivals: { process: "constant", ratePerSecond: RATE },
    groups: [
      {
        name: "own",
        userTokens: { distribution: "normal", mean: 512, stddev: 128, min: 2, max: 7000 },
        outputTokens: { distribution: "normal", mean: 128, stddev: 64, min: 2, max: 512 },
      },
    ],
  };
}

/** The same requests by their distribution, on the same engine. */
function blisFlags({ kvBlocks }: EngineConfig, requests: number): readonly string[] {
  return Object.entries({
    model: "meta-llama/llama-3.1-8b-instruct",
    hardware: "H100",
    tp: 1,
    "latency-model": "roofline",
    "total-kv-blocks": kvBlocks - 1,
    "prompt-tokens": 512,
    "prompt-tokens-stdev": 128,
    "output-tokens": 128,
    "output-tokens-stdev": 64,
    "output-tokens-max": 512,
    timeout: -1,
    seed: SEED,
    "routing-policy": "weighted",
    "num-instances": INSTANCES,
    rate: RATE,
    "num-requests": requests,
  }).flatMap(([flag, value]) => [`--${flag}`, String(value)]);
}
