import type { Design } from "#core/rollout/plan/rollout-plan.ts";
import { MICROS_PER_SECOND } from "#core/base/units.ts";
import type { ArmEffect } from "./outcome-rollout.ts";
import { designsNamed, keptAs, ownTraffic, trustRollout, type TrustQuestion } from "./trust.ts";

/** Seconds that few of the control's first tokens take. */
const TAIL_SECONDS = 1.5;

/** What an arm does to its requests: harm, and what is none. */
const EFFECTS: Readonly<Record<string, ArmEffect>> = {
  "errors x10": (outcome, { fault }) => ({ ...outcome, failed: fault < 0.03 }),
  "p99 x2": (outcome) => (outcome.ttft > TAIL_SECONDS ? { ...outcome, ttft: 2 * outcome.ttft } : outcome),
  "TTFT, TPOT +60 %": (outcome) => ({ ...outcome, ttft: 1.6 * outcome.ttft, tpot: 1.6 * outcome.tpot }),
  "one tenant x5": (outcome, { tenant }) =>
    tenant === "t2" ? { ...outcome, ttft: 5 * outcome.ttft, tpot: 5 * outcome.tpot } : outcome,
  "3 % TTFT x10": (outcome, { tail }) => (tail < 0.03 ? { ...outcome, ttft: 10 * outcome.ttft } : outcome),
  "harmless: none": (outcome) => outcome,
  "harmless: +3 %": (outcome) => ({ ...outcome, ttft: 1.03 * outcome.ttft, tpot: 1.03 * outcome.tpot }),
  "harmless: 1 % x1.5": (outcome, { tail }) => (tail < 0.01 ? { ...outcome, ttft: 1.5 * outcome.ttft } : outcome),
  "harmless: errors +10 %": (outcome, { fault }) => ({ ...outcome, failed: fault < 0.0033 }),
};

/** Rollouts that the default limits, or a canary's own rule, take back, and when. */
export function trustHarm(question: TrustQuestion & { readonly only?: string | undefined }): void {
  const { runs, seconds, only = "", kept, trafficOf = ownTraffic, predicts = false } = question;
  print(`Taken back within ${seconds} s; minutes from the start: median, 95 %; share of the arm then`);
  for (const [name, design] of designsNamed(question)) {
    for (const [harm, effect] of Object.entries(EFFECTS)) {
      if (!harm.startsWith(only)) continue;
      const minutes: number[] = [];
      const reasons = new Map<string, number>();
      let [reached, made] = [0, 0];
      for (let seed = 1; seed <= runs; seed++) {
        const one = kept.result(`harm ${harm} ${seconds} ${name} ${seed}${keptAs(question)}`, () =>
          endOf({ traffic: trafficOf(seed, seconds), design, seed, seconds, effect, predicts }),
        );
        if (one === undefined) continue;
        made++;
        if (one.reached) reached++;
        if (one.minutes === null) continue;
        minutes.push(one.minutes);
        reasons.set(one.reason, (reasons.get(one.reason) ?? 0) + 1);
      }
      minutes.sort((one, other) => one - other);
      const at = (q: number) =>
        minutes[Math.min(minutes.length - 1, Math.floor(q * minutes.length))]?.toFixed(1) ?? "-";
      const by = [...reasons]
        .sort(([, a], [, b]) => b - a)
        .slice(0, 3)
        .map(([reason, count]) => `${reason} ${count}`);
      const share = `${minutes.length} of ${made}`;
      const all = design.kind === "canary" ? `; ${reached} reached 100 %` : "";
      print(
        `${name.padEnd(17)} ${harm.padEnd(23)} ${share.padStart(10)} ${at(0.5).padStart(6)} ${at(0.95).padStart(6)}  ${by.join(", ")}${all}`,
      );
    }
  }
}

/** When a rollout was taken back, null where it was not, why, and whether a canary got to all traffic. */
interface Ended {
  readonly minutes: number | null;
  readonly reason: string;
  readonly reached: boolean;
}

function endOf(run: Parameters<typeof trustRollout>[0]): Ended {
  const { design } = run;
  const { steps, watch } = trustRollout({ ...run, accepts: () => true });
  const reached = shareOf(design, watch.state.canaryStep) >= 100;
  const back = steps.find(({ step }) => step === "rollback");
  if (back === undefined) return { minutes: null, reason: "", reached };
  const reason = /^other: (.*?) (is|:)/.exec(back.reason)?.[1]?.replace(/tenant .*/, "tenant") ?? back.reason;
  return { minutes: (back.at / MICROS_PER_SECOND - 60) / 60, reason, reached };
}

function shareOf(design: Design, step: number): number {
  return design.kind === "canary" ? design.stepPercents[step]! : 0;
}

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}
