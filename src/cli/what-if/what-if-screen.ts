import { COVERAGE } from "#shadow/figure/interval.ts";
import { KNOWABLE_WIDTH } from "#shadow/figure/backlog.ts";
import type { Metric } from "#shadow/figure/metric.ts";
import type { CandidateAnswer, WhatIfAnswer } from "#shadow/question/what-if.ts";
import { areMeansApart } from "#shadow/report/means-apart.ts";
import { verdict } from "#shadow/report/verdict.ts";
import { LINE_CHARS, millisOf, percentOf, wrapped } from "../output/figure-text.ts";
import { switchSentence } from "./what-if-switch.ts";
import { objectiveSentence, objectiveValueOf, type WhatIfObjective } from "./objective-sentence.ts";

/** A terminal that is larger is not filled; one that is smaller scrolls. */
const LINES = { least: 24, most: 40 };
const CHARS = { least: 80, most: LINE_CHARS };
const CELL_CHARS = 9;
const NAME_CHARS_MIN = 20;
/** So many candidates are shown, however small the terminal is. */
const ROWS_MIN = 3;
/** Of what else there is. */
const ALSO_LINES = 2;
const NAMED_MAX = 3;
const WITHIN = `${100 * COVERAGE} %`;
const MEANS: readonly (readonly [Metric, string])[] = [
  ["ttftMicros", "TTFT"],
  ["tpotMicros", "TPOT"],
  ["e2eMicros", "E2E"],
];

export interface ScreenOptions {
  readonly guessed?: string | undefined;
  readonly objective?: WhatIfObjective | undefined;
  /** Whose traffic it was, where that is another router's. */
  readonly router?: string | undefined;
  /** As far as they are known. */
  readonly terminal: { readonly rows?: number; readonly columns?: number };
  /** Lines that stand beside the answer. */
  readonly beside: readonly string[];
}

interface Column {
  readonly head: readonly [string, string];
  readonly cell: (one: CandidateAnswer) => string;
  /** Without it the question is not answered. */
  readonly isAsked: boolean;
}

/** The answer on one screen: what the objective asks for first, the verdict, a line for each candidate, the best ones first. */
export function whatIfScreen(answer: WhatIfAnswer, options: ScreenOptions): string {
  const { guessed, objective, router, terminal, beside } = options;
  const change = router === undefined ? undefined : switchSentence(answer, router);
  const chars = within(terminal.columns, CHARS);
  const used = beside.reduce((sum, line) => sum + Math.ceil(line.length / chars), 0);
  const lines = within(terminal.rows, LINES) - used;
  const words = (text: string): string[] => wrapped(text, chars).split("\n");
  const columns = fitting(columnsFor(answer, objective), chars);
  const before = [
    ...(change === undefined ? [] : words(change)),
    ...(objective === undefined ? [] : words(objectiveSentence(answer, objective))),
    ...words(verdict(answer, guessed)),
    "",
    ...words(`${answer.requests} requests; in force: ${answer.inForce}. Simulated, milliseconds${apartWords(answer)}.`),
    ...headOf(columns, chars),
  ];
  const saturated = saturation(answer, words);
  const all = sorted(answer, objective);
  const room = lines - before.length - saturated.length - ALSO_LINES;
  const hasIntervals = answer.replicas > 0 && 2 * all.length <= room;
  const shown = shownOf(all, answer.inForce, Math.max(ROWS_MIN, room));
  const rows = shown.flatMap((one) => [
    rowOf(one, columns, chars),
    ...(hasIntervals ? intervalLine(one, objective, chars) : []),
  ]);
  const hidden = all.length - shown.length;
  const more = [
    ...(hidden === 0 ? [] : [`${hidden} more ${hidden === 1 ? "candidate" : "candidates"}`]),
    ...(answer.replicas > 0 && !hasIntervals ? ["intervals"] : []),
    ...(answer.candidates.some(({ regret }) => regret !== undefined) ? ["regret"] : []),
    "placement, causes, the model's own error",
  ];
  return `${[...before, ...rows, ...saturated, ...words(`Also with --all, or -o FILE.html: ${more.join(", ")}.`)].join("\n")}\n`;
}

function apartWords(answer: WhatIfAnswer): string {
  return areMeansApart(answer) ? ", late first tokens included, which differences and sessions are without" : "";
}

function within(size: number | undefined, { least, most }: typeof LINES): number {
  return Math.min(most, Math.max(least, size ?? most));
}

/** In the order in which they are read. */
function columnsFor({ candidates, requests }: WhatIfAnswer, objective: WhatIfObjective | undefined): Column[] {
  const millis = (metric: Metric, name: string, figure: "mean" | "p99"): Column => ({
    head: [name, figure],
    cell: ({ predicted }) => known(predicted[metric]?.[figure], millisOf),
    isAsked: `${name.toLowerCase()}-${figure}` === objective || figure === "mean",
  });
  const session = (figure: "mean" | "p99"): Column => ({
    head: ["session", figure],
    cell: ({ sessions }) => known(sessions?.[figure], millisOf),
    isAsked: objective === `session-${figure}`,
  });
  const hasSessions = candidates.some(({ sessions: { count } = { count: 0 } }) => count > 0 && count < requests);
  return [
    ...MEANS.flatMap(([metric, name]) => [millis(metric, name, "mean"), millis(metric, name, "p99")]),
    ...(hasSessions ? [session("mean"), session("p99")] : []),
    ...columnIf(
      candidates.some(({ goodput }) => goodput !== undefined),
      ["within", "--slo"],
      ({ goodput }) => known(goodput, percentOf),
    ),
    ...columnIf(
      candidates.some(({ scaling }) => scaling !== undefined),
      ["replica", "hours"],
      ({ replicaHours }) => replicaHours.toFixed(2),
    ),
    ...columnIf(
      candidates.some(({ completed }) => completed < requests),
      ["not", "answered"],
      ({ completed }) => String(requests - completed),
    ),
  ];
}

function columnIf(isKnown: boolean, head: Column["head"], cell: Column["cell"]): Column[] {
  return isKnown ? [{ head, cell, isAsked: true }] : [];
}

function known(value: number | undefined, text: (value: number) => string): string {
  return value === undefined || Number.isNaN(value) ? "-" : text(value);
}

/** As many as there is room for, what was asked for before the rest. */
function fitting(columns: readonly Column[], chars: number): Column[] {
  const room = Math.floor((chars - NAME_CHARS_MIN) / CELL_CHARS);
  const first = new Set(columns.toSorted((a, b) => Number(b.isAsked) - Number(a.isAsked)).slice(0, room));
  return columns.filter((column) => first.has(column));
}

function headOf(columns: readonly Column[], chars: number): string[] {
  const line = (name: string, at: 0 | 1): string =>
    joined(
      name,
      columns.map(({ head }) => head[at]),
      chars,
    );
  return [line("", 0), line("profile", 1)];
}

function rowOf(one: CandidateAnswer, columns: readonly Column[], chars: number): string {
  return joined(
    one.name,
    columns.map(({ cell }) => cell(one)),
    chars,
  );
}

function joined(name: string, cells: readonly string[], chars: number): string {
  const width = chars - CELL_CHARS * cells.length;
  const short = name.length < width ? name : `${name.slice(0, width - 4)}...`;
  return `${short.padEnd(width)}${cells.map((cell) => cell.padStart(CELL_CHARS)).join("")}`.trimEnd();
}

/** Of the means, and of the objective where it is none of them. */
function intervalLine({ intervals }: CandidateAnswer, objective: WhatIfObjective | undefined, chars: number): string[] {
  const wanted = MEANS.flatMap(([metric, name]) => {
    const range = intervals[metric];
    if (range === undefined) return [];
    const words = (figure: "mean" | "p99"): string =>
      `${name} ${figure === "mean" ? "" : "p99 "}${millisOf(range[figure].low)} to ${millisOf(range[figure].high)}`;
    return objective === `${name.toLowerCase()}-p99` ? [words("mean"), words("p99")] : [words("mean")];
  });
  const line = `  ${WITHIN}: ${wanted.join(", ")}`;
  return wanted.length === 0 ? [] : [line.length <= chars ? line : `${line.slice(0, chars - 3)}...`];
}

/** By the objective, else in the order of the answer, which is by mean E2E. */
function sorted({ candidates }: WhatIfAnswer, objective: WhatIfObjective | undefined): readonly CandidateAnswer[] {
  if (objective === undefined) return candidates;
  const loss = (one: CandidateAnswer): number => objectiveValueOf(one, objective)?.loss ?? Infinity;
  return candidates.toSorted((a, b) => Number(a.scenario !== "") - Number(b.scenario !== "") || loss(a) - loss(b));
}

/** The first ones, and the one in force. */
function shownOf(all: readonly CandidateAnswer[], inForce: string, room: number): readonly CandidateAnswer[] {
  if (all.length <= room) return all;
  const first = all.slice(0, room);
  const base = all.find(({ name }) => name === inForce);
  return base === undefined || first.includes(base) ? first : [...first.slice(0, -1), base];
}

/** Where a queue leaves no time to the first token to be known. */
function saturation({ candidates }: WhatIfAnswer, words: (text: string) => string[]): string[] {
  const names = candidates.flatMap(({ name, backlog }) => (backlog === undefined ? [] : [name]));
  if (names.length === 0) return [];
  const more = names.length > NAMED_MAX ? ` and ${names.length - NAMED_MAX} more` : "";
  return words(
    `Near saturation, so that a time to the first token cannot be known within a factor of ${KNOWABLE_WIDTH}: ` +
      `${names.slice(0, NAMED_MAX).join("; ")}${more}.`,
  );
}
