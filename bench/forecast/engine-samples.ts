import { join } from "node:path";
import { Program } from "../closed-loop/program.ts";
import { freePort } from "../free-port.ts";
import { EngineProcess } from "./engine-process.ts";

export interface EngineRunOptions {
  /** Command that starts an engine at the port that it is given; each of so many. */
  readonly command: string;
  readonly engines: number;
  /** Mooncake's conversations, as they were recorded. */
  readonly mooncake: string;
  readonly requests: number;
  /** Arrivals a second are so many times the recorded ones (3 a second). */
  readonly rateScale: number;
  readonly seed: number;
  /** Folder for the trace. */
  readonly folder: string;
}

/** Prompts and answers that a small model on a few cores keeps up with: prompts of about 600 tokens, answers of 60. */
const TOKEN_SCALE = 0.06;
const INPUT_TOKENS_MAX = 4_000;
const OUTPUT_SCALE = 0.2;
const OUTPUT_TOKENS_MAX = 80;
/** Requests that get the engines' code compiled and their caches going, straight to each. */
const WARM_UP_REQUESTS = 12;

/** Records a gateway under the default in front of real engines that are started for it; returns the trace's folder. */
export async function engineRun(options: EngineRunOptions): Promise<string> {
  const { command, engines: count, requests, seed, folder } = options;
  const trace = join(folder, "engines");
  const engines: EngineProcess[] = [];
  let gateway: Program | undefined;
  try {
    engines.push(...(await Promise.all(Array.from({ length: count }, () => EngineProcess.start(command)))));
    const urls = engines.map(({ url }) => url);
    await Program.run(driveOrder(options, urls, WARM_UP_REQUESTS, seed + 1), [0, 1]);
    const port = await freePort();
    gateway = await Program.start(
      {
        command: "serve",
        flags: { endpoint: urls, port, profile: "gnomon", record: trace, seed, "log-level": "warn" },
      },
      "gnomon is ready",
    );
    await Program.run(driveOrder(options, [`http://127.0.0.1:${port}`], requests, seed), [0, 1]);
  } finally {
    await gateway?.stop();
    await Promise.all(engines.map((one) => one.stop()));
  }
  return trace;
}

function driveOrder({ mooncake, rateScale }: EngineRunOptions, url: readonly string[], limit: number, seed: number) {
  return {
    command: "drive",
    flags: {
      url,
      trace: mooncake,
      limit,
      seed,
      "rate-scale": rateScale,
      "prompt-form": "tokens",
      "token-scale": TOKEN_SCALE,
      "max-input-tokens": INPUT_TOKENS_MAX,
      "output-scale": OUTPUT_SCALE,
      "max-output-tokens": OUTPUT_TOKENS_MAX,
      "drain-seconds": 60,
    },
  };
}
