import { LEFT_OUT_ERROR, UNMEASURED } from "#engine/achieved.ts";
import type { EngineConfig } from "#engine/config.ts";
import { boardNamed } from "./model-on-board.ts";

const PERCENT = 100;

/** How an engine's step times were obtained where nothing was measured on it, and how far such ones were off. */
export function predictionWords({ stepTime }: EngineConfig, hardware: string | undefined): string[] {
  if (stepTime.kind !== "kernel-roofline") return [];
  const { runs, tpot, ttft } = LEFT_OUT_ERROR;
  const share = (value: number) => Math.round(PERCENT * value);
  const lines = [
    `engine: a roofline of its kernels, nothing fitted to it. Of ${runs} published runs such predictions were off by ` +
      `${share(tpot.median)} % (TPOT) and ${share(ttft.median)} % (TTFT) in the median, 9 of 10 by less than ` +
      `${share(tpot.ninety)} and ${share(ttft.ninety)} %; calibrate --live or --from-bench fits your own`,
  ];
  if (hardware !== undefined && UNMEASURED.has(boardNamed(hardware).generation))
    lines.push(`note: nothing of these was measured on ${hardware} or a board like it`);
  return lines;
}
