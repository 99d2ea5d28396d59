import { MICROS_PER_MILLI } from "#core/base/units.ts";
import {
  type Compared,
  COMPARED,
  type Gap,
  type PolicyFigures,
  type TransferAnswer,
} from "#shadow/question/compare.ts";
import type { Interval } from "#shadow/figure/interval.ts";
import type { CandidateAnswer } from "#shadow/question/what-if.ts";
import { type LiveRun, troubles } from "./live-run.ts";

/** One profile's figures, measured beside predicted. */
export interface ProfileRow {
  readonly run: LiveRun;
  /** As the gateway saw it, from its decision on. */
  readonly recorded: PolicyFigures;
  readonly predictedImbalance: number | null;
  /** Where 90 % of live runs are to lie, as far as the fit shows; undefined without replicas. */
  readonly intervals: CandidateAnswer["intervals"];
  /** The same of the mean difference to the profile that was fitted to. */
  readonly differences: CandidateAnswer["differenceInterval"];
}

const LIVE_HEAD = [
  "profile",
  "requests",
  "failed",
  "hits %",
  "TTFT ms mean",
  "p50",
  "p99",
  "TPOT ms mean",
  "E2E ms mean",
  "p50",
  "p99",
  "max/mean in flight",
];

/** What the runs measured at their clients, best mean E2E first. */
export function liveTable(runs: readonly LiveRun[]): string {
  const sorted = runs.toSorted((a, b) => (a.report.e2eMillis.mean ?? 0) - (b.report.e2eMillis.mean ?? 0));
  return markdown(
    LIVE_HEAD,
    sorted.map(({ profile, report }) => {
      const { requests, hitRatio, ttftMillis, tpotMillis, e2eMillis, imbalance } = report;
      return [
        profile,
        String(requests.sent),
        String(requests.sent - requests.ok),
        number(scaled(hitRatio.engine, 100), 1),
        ...[ttftMillis.mean, ttftMillis.p50, ttftMillis.p99].map((value) => number(value, 0)),
        number(tpotMillis.mean, 1),
        ...[e2eMillis.mean, e2eMillis.p50, e2eMillis.p99].map((value) => number(value, 0)),
        number(imbalance.mean, 2),
      ];
    }),
  );
}

/** Whether emulator, gateway and driver kept up; a run in which they did not shows nothing of a policy. */
export function machineTable(rows: readonly ProfileRow[]): string {
  return markdown(
    ["profile", "engine steps late, ms mean", "p99", "sent late, ms p99", "driver's loop late, ms p99"].concat([
      "TTFT before the decision, ms mean",
      "gateway busy",
      "fleet busy",
      "gateway without a core",
      "fleet without a core",
      "verdict",
    ]),
    rows.map(({ run: { profile, machine, report }, recorded }) => [
      profile,
      ...[machine.engineLagMean, machine.engineLagP99, machine.sentLateP99, machine.driveLagP99].map((value) =>
        number(value, 1),
      ),
      number((report.ttftMillis.mean ?? NaN) - (recorded.figures.ttftMean ?? NaN) / MICROS_PER_MILLI, 1),
      ...[machine.gatewayBusy, machine.fleetBusy, machine.gatewayStarved, machine.fleetStarved].map(
        (share) => `${number(100 * share, 0)} %`,
      ),
      troubles(machine).join("; ") || "kept up",
    ]),
  );
}

const SHOWN: readonly (readonly [Compared, string])[] = [
  ["ttftMean", "TTFT mean"],
  ["ttftP50", "p50"],
  ["ttftP99", "p99"],
  ["tpotMean", "TPOT mean"],
  ["e2eMean", "E2E mean"],
  ["e2eP50", "p50"],
  ["e2eP99", "p99"],
];

/** Those that are shown with their figure. */
const INTERVALS: ReadonlyMap<Compared, (all: CandidateAnswer["intervals"]) => Interval | undefined> = new Map([
  ["ttftMean", (all: CandidateAnswer["intervals"]) => all.ttftMicros?.mean],
  ["e2eMean", (all: CandidateAnswer["intervals"]) => all.e2eMicros?.mean],
] as const);

/** Measured, predicted, their gap and the prediction's interval, a row per profile; times in milliseconds. */
export function gapTable(rows: readonly ProfileRow[], { figures }: TransferAnswer, calibratedOn: string): string {
  const head = ["profile", ...SHOWN.map(([, label]) => label), "hits %", "max/mean in flight"];
  return markdown(
    head,
    rows.map(({ run, predictedImbalance, intervals }) => {
      const cell = (figure: Compared, factor: number, digits: number): string => {
        const gap = figures[figure]?.gaps.find(({ policy }) => policy === run.profile);
        if (gap === undefined) return "-";
        const [live, simulated] = [gap.live * factor, gap.simulated * factor];
        const interval = INTERVALS.get(figure)?.(intervals);
        const reach =
          interval === undefined
            ? ""
            : ` [${(interval.low * factor).toFixed(0)}, ${(interval.high * factor).toFixed(0)}]`;
        return `${live.toFixed(digits)} → ${simulated.toFixed(digits)} (${signedPercent(gap.relative)})${reach}`;
      };
      return [
        run.profile === calibratedOn ? `${run.profile} (fitted)` : run.profile,
        ...SHOWN.map(([figure]) => cell(figure, 1e-3, figure.startsWith("tpot") ? 2 : 0)),
        cell("hitRatio", 100, 1),
        `${number(run.report.imbalance.mean, 2)} → ${number(predictedImbalance, 2)}`,
      ];
    }),
  );
}

/** How many of the measured figures lie in the intervals of their predictions, of which 90 % are to. */
export function coverageLine(rows: readonly ProfileRow[]): string {
  const parts = [...INTERVALS].map(([figure, intervalOf]) =>
    partInside(
      figure,
      rows.map(({ recorded, intervals }) => [recorded.figures[figure], intervalOf(intervals)]),
    ),
  );
  return `Measured within the prediction's interval: ${parts.join(", ")}.`;
}

const DIFFERENCES = [
  ["ttftMean", "ttftMicros"],
  ["tpotMean", "tpotMicros"],
  ["e2eMean", "e2eMicros"],
] as const;

/** The same of differences to the first row, whose engines and draws are those of the others. */
export function differenceLine([base, ...rows]: readonly ProfileRow[]): string {
  const parts = DIFFERENCES.map(([figure, metric]) =>
    partInside(
      figure,
      rows.map(({ recorded, differences }) => {
        const [own, other] = [recorded.figures[figure], base?.recorded.figures[figure]];
        return [own === undefined || other === undefined ? undefined : own - other, differences[metric]];
      }),
    ),
  );
  return `Measured difference to ${base?.run.profile} within its interval: ${parts.join(", ")}.`;
}

function partInside(name: string, pairs: readonly (readonly [number | undefined, Interval | undefined])[]): string {
  const known = pairs.flatMap(([value, interval]) =>
    value === undefined || interval === undefined ? [] : [{ value, interval }],
  );
  const inside = known.filter(({ value, interval }) => value >= interval.low && value <= interval.high);
  return `${name} ${inside.length} of ${known.length}`;
}

/** How well the prediction orders the policies, figure by figure. */
export function rankTable({ figures }: TransferAnswer): string {
  return markdown(
    ["figure", "Spearman", "pairs in order", `those ${percent(APART)} apart`, "mean gap", "largest gap"].concat([
      "regret of the predicted best",
    ]),
    COMPARED.flatMap((figure) => {
      const transfer = figures[figure];
      if (transfer === undefined) return [];
      const largest = Math.max(...transfer.gaps.map(({ relative }) => Math.abs(relative ?? 0)));
      return [
        [
          figure,
          number(transfer.spearman, 3),
          `${transfer.pairsPreserved} of ${transfer.pairs}`,
          apartInOrder(transfer.gaps),
          `${number(scaled(transfer.relativeMeanAbsolute, 100), 1)} %`,
          `${number(100 * largest, 1)} %`,
          `${number(scaled(transfer.regret, 100), 1)} %`,
        ],
      ];
    }),
  );
}

/** Nearer policies change places from one live run to the next. */
const APART = 0.03;

function apartInOrder(gaps: readonly Gap[]): string {
  let pairs = 0;
  let inOrder = 0;
  gaps.forEach((a, i) => {
    for (const b of gaps.slice(i + 1)) {
      if (Math.abs(a.live - b.live) < APART * Math.min(a.live, b.live)) continue;
      pairs++;
      if (Math.sign(a.live - b.live) === Math.sign(a.simulated - b.simulated)) inOrder++;
    }
  });
  return `${inOrder} of ${pairs}`;
}

function percent(share: number): string {
  return `${(100 * share).toFixed(0)} %`;
}

function markdown(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) => `| ${cells.join(" | ")} |`;
  return [line(head), line(head.map((_, i) => (i === 0 ? "---" : "---:"))), ...rows.map(line)].join("\n");
}

function number(value: number | null | undefined, digits: number): string {
  return value === null || value === undefined || Number.isNaN(value) ? "-" : value.toFixed(digits);
}

function scaled(value: number | null | undefined, factor: number): number | undefined {
  return value === null || value === undefined ? undefined : value * factor;
}

function signedPercent(share: number | undefined): string {
  return share === undefined ? "-" : `${share < 0 ? "" : "+"}${(100 * share).toFixed(1)} %`;
}
