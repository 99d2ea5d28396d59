import { finished } from "#core/base/finished.ts";
import { loadProfile } from "#config/profile-file.ts";
import { inForceOf } from "#shadow/candidate/in-force.ts";
import { recordedSetting } from "#shadow/candidate/recorded-setting.ts";
import { readRecordedRun } from "#shadow/recorded/recorded-run.ts";
import { recordedLedger } from "#shadow/why/recorded-ledger.ts";
import { type SlowAnswer, slowAnswers } from "#shadow/why/slow-answers.ts";
import { knewTooLittle, type TokenSummary, tokenSummary } from "#shadow/why/token-summary.ts";
import type { TraceItem } from "#trace/codec/record.ts";
import { ENGINE, SIGNALS } from "./injected-cause.ts";

export interface Explained {
  readonly tokens: TokenSummary;
  readonly slow: SlowAnswer;
}

/** Simulations of a case's traffic at most. */
const WORLDS_MAX = 64;

/**
 * What `why` makes of a trace, on the engine as it is stated and without what was injected or how its steps wander; by
 * mean TTFT. `against` is the policy that the one in force is held against.
 */
export async function explained(items: readonly TraceItem[], against: string): Promise<Explained> {
  const run = await readRecordedRun(streamOf(items));
  const kvBlocks = run.header.engine?.kvBlocks ?? ENGINE.kvBlocks;
  const { rows } = await recordedLedger(streamOf(items), () => kvBlocks - 1, Infinity);
  const tokens = tokenSummary(rows);
  const steps = slowAnswers({
    setting: recordedSetting(run, { engine: { ...ENGINE, kvBlocks }, residuals: undefined, signals: SIGNALS }),
    inForce: inForceOf(run.header, run.fleetEvents),
    otherwise: { name: against, spec: loadProfile(against).spec },
    observed: run.observed,
    isIndexWrong: knewTooLittle(tokens),
    figure: { time: "ttft", of: "mean" },
    worldsMax: WORLDS_MAX,
    replicas: 0,
    seed: 1,
  });
  return { tokens, slow: finished(steps) };
}

async function* streamOf(items: readonly TraceItem[]): AsyncGenerator<TraceItem> {
  yield* items;
}
