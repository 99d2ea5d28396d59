import { MICROS_PER_MILLI } from "#core/base/units.ts";
import type { HandoffFigures } from "#sim/handoff/handoff-desk.ts";
import type { StageOption } from "./stage-option.ts";

/** Where prompts could be computed elsewhere than where they were answered; its flags are those of the architecture. */
export const PREFILL_OPTION: StageOption = {
  name: "handoffs",
  flags: [],
  rowsOf: (figures) => rowsOf(figures as HandoffFigures),
};

function rowsOf(figures: HandoffFigures): readonly (readonly [string, string])[] {
  const { shared, colocated, transfers, failed, expired, bytes, transferMicrosMean, heldMicrosMean } = figures;
  const alone = Object.entries(colocated).map(([reason, count]) => `${count} ${reason}`);
  const at = alone.length === 0 ? "none at one endpoint" : `at one endpoint ${alone.join(", ")}`;
  const lost = failed + expired === 0 ? "" : `; ${failed} failed, ${expired} leases expired`;
  const times = `${millis(transferMicrosMean)} ms each after ${millis(heldMicrosMean)} ms`;
  return [
    ["prefill", `${shared} decisions for two endpoints, ${at}`],
    ["transfers", `${transfers}, ${(bytes / 1e9).toFixed(2)} GB, ${times}${lost}`],
  ];
}

function millis(micros: number): string {
  return (micros / MICROS_PER_MILLI).toFixed(2);
}
