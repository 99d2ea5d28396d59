import { Option } from "commander";
import { RARE } from "#drive/rare-option.ts";
import type { StageFigures } from "#sim/path/stage-performer.ts";
import { PREFILL_OPTION } from "./prefill-rows.ts";
import { CASCADE_OPTION } from "./simulate-cascade.ts";
import type { SimulateFlags } from "./simulate-flags.ts";
import type { StageOption, StagePlan } from "./stage-option.ts";

const STAGE_OPTIONS: readonly StageOption[] = [PREFILL_OPTION, CASCADE_OPTION];

/** Their flags. */
export function stageFileOptions(): readonly Option[] {
  return STAGE_OPTIONS.flatMap(({ flags }) =>
    flags.map(([flag, meaning]) => new Option(flag, meaning).helpGroup(RARE)),
  );
}

/** What is asked for; one stage at most brings its own engines. */
export function stagePlan(flags: SimulateFlags): StagePlan | undefined {
  for (const { planOf } of STAGE_OPTIONS) {
    const plan = planOf?.(flags);
    if (plan !== undefined) return plan;
  }
  return undefined;
}

/** What stages came to, as rows of the table. */
export function stageFigureRows(stages: readonly StageFigures[]): (readonly [name: string, text: string])[] {
  return stages.flatMap(({ name, figures }) => STAGE_OPTIONS.find((one) => one.name === name)?.rowsOf(figures) ?? []);
}
