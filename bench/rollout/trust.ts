import { TIME_FIGURES, TIME_METRICS } from "#core/rollout/judge/outcome.ts";
import type { Design } from "#core/rollout/plan/rollout-plan.ts";
import { MICROS_PER_SECOND } from "#core/base/units.ts";
import { defaultGuardrails } from "#serve/rollout/guardrails.ts";
import { type OutcomeRollout, outcomeRollout } from "./outcome-rollout.ts";
import type { KeptRuns } from "./kept-runs.ts";
import { drawnTraffic, type DrawnRequest } from "./outcome-traffic.ts";

export interface TrustQuestion {
  readonly runs: number;
  readonly seconds: number;
  readonly design?: string | undefined;
  readonly kept: KeptRuns;
  /** With what the simulator predicts of each request. */
  readonly predicts?: boolean;
  /** The traffic of each run, and what it is called where that is not the bench's own. */
  readonly about?: string;
  readonly trafficOf?: (seed: number, seconds: number) => DrawnRequest[];
}

/** What distinguishes runs that are kept in one file, beside what is asked of them. */
export function keptAs({ predicts = false, about = "own" }: TrustQuestion): string {
  return `${about === "own" ? "" : ` ${about}`}${predicts ? " predicted" : ""}`;
}

const PER_SECOND = 6;
/** Seconds of work in a second: on average half of it is asked for. */
export const SPEED = 1.5;
const WINDOW_MICROS = 60 * MICROS_PER_SECOND;
const STEPS: readonly number[] = [5, 25, 50, 100];

const TRUST_DESIGNS: Readonly<Record<string, Design>> = {
  switchback: { kind: "switchback", windowMicros: WINDOW_MICROS, washoutMicros: WINDOW_MICROS / 5 },
  "switchback 20 s": { kind: "switchback", windowMicros: WINDOW_MICROS / 3, washoutMicros: WINDOW_MICROS / 15 },
  pools: { kind: "pools", windowMicros: WINDOW_MICROS, by: "session", label: "pool" },
  "engines by label": { kind: "pools", windowMicros: WINDOW_MICROS, by: "session", label: "pool", redrawn: true },
  "split by session": { kind: "split", windowMicros: WINDOW_MICROS, by: "session" },
  "split by tenant": { kind: "split", windowMicros: WINDOW_MICROS, by: "tenant" },
  "split by request": { kind: "split", windowMicros: WINDOW_MICROS, by: "request" },
  canary: { kind: "canary", windowMicros: 5 * WINDOW_MICROS, by: "session", stepPercents: STEPS },
};

export function designsNamed({ design }: TrustQuestion): [string, Design][] {
  return Object.entries(TRUST_DESIGNS).filter(([name]) => design === undefined || name.startsWith(design));
}

/** Blocks or clusters that a rollout as long is planned with. */
export function countIn(design: Design, seconds: number): number {
  if (design.kind === "switchback") return (seconds * MICROS_PER_SECOND) / design.windowMicros / 2;
  if (design.kind === "pools") return (seconds * MICROS_PER_SECOND) / design.windowMicros;
  return "by" in design && design.by === "tenant" ? 30 : (PER_SECOND / 6) * seconds;
}

/** A rollout with the limits that it has by itself, on engines as these benches have them. */
export function trustRollout(
  run: Omit<OutcomeRollout, "plannedCount" | "guardrails" | "speed">,
): ReturnType<typeof outcomeRollout> {
  const plannedCount = countIn(run.design, run.seconds);
  return outcomeRollout({ ...run, plannedCount, guardrails: defaultGuardrails(), speed: SPEED });
}

/** What came of a rollout of a policy against itself: figures with an alarm at any look, and whether it was taken back. */
interface Alarmed {
  readonly found: readonly number[];
  readonly taken: boolean;
}

const KEYS = TIME_METRICS.flatMap((metric) => TIME_FIGURES.map((figure) => [metric, figure] as const));

/** The same policy on both arms: runs with an interval that leaves out 0 at any look, by figure and for all of them. */
export function trustFalseAlarms(question: TrustQuestion): void {
  const { runs, seconds, kept, about = "own", trafficOf = ownTraffic, predicts = false } = question;
  print(`A/A, rollouts of ${seconds} s, looked at every 15 s: percent of them with an alarm at any look`);
  print(`${"".padEnd(18)}${KEYS.map((key) => key.join(".").padStart(10)).join("")}   any  back  of`);
  for (const [name, design] of designsNamed(question)) {
    const all: Alarmed[] = [];
    for (let seed = 1; seed <= runs; seed++) {
      const one = kept.result(`aa ${about} ${seconds} ${name} ${seed}${predicts ? " predicted" : ""}`, () =>
        alarmsOf({ traffic: trafficOf(seed, seconds), design, seed, seconds, predicts }, name),
      );
      if (one !== undefined) all.push(one);
    }
    const share = (count: number, places: number) => ((100 * count) / all.length).toFixed(1).padStart(places);
    const cells = KEYS.map((_, i) => share(all.filter(({ found }) => found.includes(i)).length, 10)).join("");
    const any = all.filter(({ found, taken }) => found.length > 0 || taken).length;
    const back = all.filter(({ taken }) => taken).length;
    print(`${name.padEnd(18)}${cells} ${share(any, 5)} ${share(back, 5)}  ${any} and ${back} of ${all.length}`);
  }
}

function alarmsOf(run: Parameters<typeof trustRollout>[0], name: string): Alarmed {
  const found = new Set<number>();
  let taken = false;
  trustRollout({
    ...run,
    accepts: ({ step }) => step === "advance",
    looked: ({ verdict, proposed }) => {
      if (!taken && proposed?.step === "rollback" && process.env["BENCH_REASONS"])
        print(`${name} ${run.seed}: ${proposed.reason}`);
      taken ||= proposed?.step === "rollback";
      verdict.differences.forEach(({ low, high }, i) => (low > 0 || high < 0) && found.add(i));
    },
  });
  return { found: [...found], taken };
}

export function ownTraffic(seed: number, seconds: number): DrawnRequest[] {
  return drawnTraffic(seed, seconds, PER_SECOND);
}

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}
