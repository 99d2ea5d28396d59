import { Option } from "commander";
import { RARE } from "#drive/rare-option.ts";
import { ConfigError } from "#config/config-error.ts";
import { MICROS_PER_MILLI } from "#core/base/units.ts";
import type { SloTargets } from "#sim/result/slo.ts";
import { amountFlag } from "../flag/flag-number.ts";
import { parseSlo } from "../flag/slo-flag.ts";

/** What requests are promised. */
export interface SloFlags {
  readonly sloTtftMillis?: number;
  readonly sloTpotMillis?: number;
  readonly sloE2eMillis?: number;
  /** By class. */
  readonly slo?: string;
}

const LATENCY_MILLIS_MAX = 1e9;

export function sloOptions(): readonly Option[] {
  const millis = (flag: string, meaning: string) =>
    new Option(`--slo-${flag}-millis <n>`, `target for the ${meaning}`)
      .argParser(amountFlag(0.001, LATENCY_MILLIS_MAX))
      .helpGroup(RARE);
  return [
    millis("ttft", "time to first token"),
    millis("tpot", "time per output token"),
    millis("e2e", "time to the last byte"),
    new Option("--slo <targets>", "class:ttft:tpot:e2e in milliseconds, comma-separated; * is any class"),
  ];
}

/** Targets by class; those of single flags are for every class. Throws ConfigError where both are given. */
export function sloTargets({ slo, sloTtftMillis, sloTpotMillis, sloE2eMillis }: SloFlags): SloTargets | undefined {
  const single = {
    ...(sloTtftMillis !== undefined && { ttftMicros: sloTtftMillis * MICROS_PER_MILLI }),
    ...(sloTpotMillis !== undefined && { tpotMicros: sloTpotMillis * MICROS_PER_MILLI }),
    ...(sloE2eMillis !== undefined && { e2eMicros: sloE2eMillis * MICROS_PER_MILLI }),
  };
  const hasSingle = Object.keys(single).length > 0;
  if (slo !== undefined && hasSingle)
    throw new ConfigError(["--slo: expected it, or --slo-ttft-millis and its siblings, got both"]);
  if (slo !== undefined) return parseSlo(slo);
  return hasSingle ? { "*": single } : undefined;
}
