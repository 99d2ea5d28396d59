import { markdown } from "../closed-loop/tables.ts";
import { type Column, COLUMNS } from "../default-choice/cell.ts";
import type { LiveCell } from "./live-cell.ts";

const HEADS: Readonly<Record<Column, string>> = {
  e2eMean: "E2E s mean",
  ttftMean: "TTFT ms mean",
  e2eP99: "E2E s p99",
  ttftP99: "TTFT ms p99",
  goodput: "good %",
};
/** Nearer policies change places from one run to the next. */
const APART = 0.03;

/** Predicted and measured figures of every policy in every case, how well the order carries over, and the machine. */
export function liveTables(cells: readonly LiveCell[]): string {
  const names = [...new Set(cells.map(({ name }) => name))];
  return [
    "Predicted | measured (least-most over the seeds):",
    markdown(
      ["held out, live", "policy", ...COLUMNS.map((column) => HEADS[column])],
      names.flatMap((name) => caseRows(cells, name)),
    ),
    "Order of the policies, measured beside predicted:",
    markdown(
      ["column", `pairs ${(100 * APART).toFixed(0)} % apart in order`, "mean gap", "largest gap"],
      COLUMNS.map((column) => orderRow(cells, names, column)),
    ),
    "The machine:",
    markdown(
      [
        "case",
        "speed",
        "runs",
        "failed",
        "steps late, ms of the engines",
        "sent late p99, ms",
        "gateway busy, most",
        "without a core, most",
        "engines busy, most",
        "without a core, most",
      ],
      names.map((name) =>
        machineRow(
          cells.filter((cell) => cell.name === name),
          name,
        ),
      ),
    ),
  ].join("\n\n");
}

function caseRows(cells: readonly LiveCell[], name: string): string[][] {
  const here = cells.filter((cell) => cell.name === name);
  const policies = [...new Set(here.map(({ policy }) => policy))];
  const best = (side: Side, column: Column): number => {
    const values = policies.map((policy) => meanOf(here, policy, side, column));
    return column === "goodput" ? Math.max(...values) : Math.min(...values);
  };
  return policies
    .toSorted((a, b) => meanOf(here, a, "measured", "e2eMean") - meanOf(here, b, "measured", "e2eMean"))
    .map((policy, i) => [
      i === 0 ? name : "",
      policy,
      ...COLUMNS.map((column) => {
        const [predicted, measured] = SIDES.map((side) => {
          const value = meanOf(here, policy, side, column);
          return value === best(side, column) ? `**${shown(column, value)}**` : shown(column, value);
        });
        const all = here.filter((cell) => cell.policy === policy).map((cell) => cell.measured[column]);
        const spread = all.length < 2 ? "" : ` (${shown(column, Math.min(...all))}-${shown(column, Math.max(...all))})`;
        return `${predicted} \\| ${measured}${spread}`;
      }),
    ]);
}

/** Pairs of policies that the simulator puts in the order in which they were measured, of those that are not level. */
function orderRow(cells: readonly LiveCell[], names: readonly string[], column: Column): string[] {
  let [pairs, inOrder] = [0, 0];
  const gaps: number[] = [];
  for (const name of names) {
    const here = cells.filter((cell) => cell.name === name);
    const policies = [...new Set(here.map(({ policy }) => policy))];
    const figures = policies.map(
      (policy) => SIDES.map((side) => meanOf(here, policy, side, column)) as [number, number],
    );
    for (const [i, [predicted, measured]] of figures.entries()) {
      gaps.push(column === "goodput" ? predicted - measured : predicted / measured - 1);
      for (const [otherPredicted, other] of figures.slice(i + 1)) {
        if (Math.abs(measured - other) < APART * Math.min(measured, other)) continue;
        pairs++;
        if (Math.sign(measured - other) === Math.sign(predicted - otherPredicted)) inOrder++;
      }
    }
  }
  const unit = column === "goodput" ? "points" : "%";
  const mean = gaps.reduce((sum, gap) => sum + gap, 0) / gaps.length;
  const largest = gaps.toSorted((a, b) => Math.abs(b) - Math.abs(a))[0] ?? NaN;
  return [
    HEADS[column],
    `${inOrder} of ${pairs}`,
    ...[mean, largest].map((gap) => `${(100 * gap).toFixed(1)} ${unit}`),
  ];
}

function machineRow(here: readonly LiveCell[], name: string): string[] {
  const most = (of: (cell: LiveCell) => number): number => Math.max(...here.map(of));
  const percent = (share: number): string => `${(100 * share).toFixed(0)} %`;
  const late = here.reduce((sum, { machine, timeScale }) => sum + machine.stepsLateMean * timeScale, 0) / here.length;
  return [
    name,
    `${here[0]!.timeScale}`,
    String(here.length),
    String(here.reduce((sum, { machine }) => sum + machine.failed, 0)),
    late.toFixed(1),
    most(({ machine }) => machine.sentLateP99).toFixed(0),
    percent(most(({ machine }) => machine.gatewayBusy)),
    percent(most(({ machine }) => machine.gatewayStarved)),
    percent(most(({ machine }) => machine.fleetBusy)),
    percent(most(({ machine }) => machine.fleetStarved)),
  ];
}

const SIDES = ["predicted", "measured"] as const;
type Side = (typeof SIDES)[number];

function meanOf(here: readonly LiveCell[], policy: string, side: Side, column: Column): number {
  const values = here.filter((cell) => cell.policy === policy).map((cell) => cell[side][column]);
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

function shown(column: Column, value: number): string {
  if (column === "goodput") return (100 * value).toFixed(1);
  return column.startsWith("e2e") ? (value / 1000).toFixed(2) : value.toFixed(0);
}
