import type { Micros } from "../../base/units.ts";
import type { Design } from "../plan/rollout-plan.ts";
import type { Judge } from "./judge.ts";
import type { RolloutOutcome, Times } from "./outcome.ts";

/** Everything that can reach a judge, as plain data: the same entries in the same order make the same judge. */
export type JudgeEntry =
  | {
      readonly kind: "arrived";
      readonly window: number;
      readonly windowEndAt: Micros;
      /** When the slice in which it came began; absent in what earlier versions kept. */
      readonly sliceAt?: Micros;
    }
  | { readonly kind: "withdrawn"; readonly window: number; readonly sliceAt?: Micros }
  | {
      readonly kind: "ended";
      readonly outcome: RolloutOutcome;
      /** Where it is compared once its prediction is there. */
      readonly awaited?: { readonly id: string; readonly endAt: Micros };
    }
  | { readonly kind: "predicted"; readonly id: string; readonly times: Times }
  | { readonly kind: "advanced"; readonly at: Micros }
  | { readonly kind: "stage"; readonly fromWindow: number; readonly design?: Design };

/** Gives a judge an entry. */
export function giveJudge(judge: Judge, entry: JudgeEntry): void {
  switch (entry.kind) {
    case "arrived":
      return judge.arrived(entry.window, entry.windowEndAt, entry.sliceAt);
    case "withdrawn":
      return judge.withdrawn(entry.window, entry.sliceAt);
    case "ended":
      return judge.observe(entry.outcome, entry.awaited);
    case "predicted":
      return judge.predicted(entry.id, entry.times);
    case "advanced":
      return judge.advance(entry.at);
    case "stage":
      return judge.startStage(entry.fromWindow, entry.design);
  }
}
