import Table from "cli-table3";
import * as z from "zod";
import { ConfigError } from "#config/config-error.ts";
import { checkShape, problemLine } from "#config/problem.ts";
import { plainTableChars } from "../output/plain-table-chars.ts";

const number = () => z.number().nullable();

/** Who was looked at, and how each fared. */
const BREAKDOWN = {
  scorers: z.array(z.object({ name: z.string(), weight: z.number() })),
  candidates: z.array(
    z.object({
      endpoint: z.string(),
      removedBy: z.string(),
      freshness: z.enum(["fresh", "stale", "unknown"]),
      loadAgeMillis: number(),
      effectiveLoad: z.number(),
      kvUtilization: z.number(),
      requestsInFlight: z.number(),
      prefillTokensQueued: z.number(),
      hitTokens: z.number(),
      scores: z.record(z.string(), number()),
      total: number(),
    }),
  ),
};

/** The part of a decision's JSON, as /gnomon/decisions gives it, that the table shows. */
const DECISION_SCHEMA = z.object({
  profile: z.string(),
  kind: z.enum(["routed", "rejected"]),
  endpoint: z.string().nullable(),
  reason: z.string(),
  why: z.string().optional(),
  /** Those of older versions have none. */
  came: z.object({ text: z.string() }).nullish(),
  hitTokens: number(),
  usedLedger: z.boolean().nullable(),
  ...BREAKDOWN,
  /** A trace's decisions and those of older versions have no table of it. */
  prefill: z
    .object({
      endpoint: z.string(),
      reason: z.string(),
      hitTokens: z.number(),
      scorers: BREAKDOWN.scorers.default([]),
      candidates: BREAKDOWN.candidates.default([]),
    })
    .nullish(),
  colocated: z.string().nullish(),
});

type DecisionJson = z.infer<typeof DECISION_SCHEMA>;
type Stage = Pick<DecisionJson, "endpoint" | "scorers" | "candidates">;

/** The table of a decision that was read from JSON. Throws ConfigError with all that is wrong with it. */
export function decisionTable(value: unknown, from: string): string {
  const checked = checkShape(DECISION_SCHEMA, value);
  if (!checked.ok) throw new ConfigError(checked.problems.map((problem) => problemLine(problem, from)));
  const decision = checked.value;
  const { prefill, colocated } = decision;
  const alone = colocated ? `its prompt is computed there too: ${colocated}\n` : "";
  const afterwards = decision.came?.text ? `then: ${decision.came.text}\n` : "";
  const text = `${verdict(decision)}\n${afterwards}${alone}${stageTable(decision)}`;
  if (!prefill) return text;
  const first = `its prompt is computed at ${prefill.endpoint} because of ${prefill.reason}, expecting ${prefill.hitTokens} cached tokens`;
  return `${text}${first}\n${prefill.candidates.length === 0 ? "" : stageTable(prefill)}`;
}

function stageTable(stage: Stage): string {
  const table = new Table({
    head: [
      "",
      "endpoint",
      "signals",
      "load",
      "kv",
      "in flight",
      "prefill",
      "hit",
      ...stage.scorers.map(scorerHead),
      "total",
    ],
    style: { head: [], border: [], compact: true },
    chars: plainTableChars(" "),
  });
  for (const row of stage.candidates) table.push(cells(row, stage));
  const lines = table.toString().split("\n");
  return `${lines.map((line) => line.trimEnd()).join("\n")}\n`;
}

function verdict({
  kind,
  endpoint,
  reason,
  why = reason,
  profile,
  hitTokens,
  usedLedger,
  candidates,
}: DecisionJson): string {
  if (kind === "rejected") return `profile ${profile} refuses: ${reason}`;
  const best = Math.max(...candidates.map((row) => row.total ?? -Infinity));
  const tied = candidates.filter((row) => row.total === best).map((row) => row.endpoint);
  const tie = tied.length > 1 ? `; ${tied.length} share the highest total: ${tied.join(", ")}` : "";
  const ledger = usedLedger === true ? "; the ledger stands in for a missing or old signal" : "";
  return `profile ${profile} picks ${endpoint ?? ""} because of ${reason}, expecting ${hitTokens ?? 0} cached tokens${tie}${ledger}${why.slice(reason.length)}`;
}

function scorerHead({ name, weight }: DecisionJson["scorers"][number]): string {
  return `${name} ×${weight.toFixed(3)}`;
}

function cells(row: Stage["candidates"][number], decision: Stage): string[] {
  const age = row.loadAgeMillis === null ? "" : ` ${Math.round(row.loadAgeMillis)} ms`;
  const signals = [
    row.endpoint === decision.endpoint ? "→" : "",
    row.endpoint,
    `${row.freshness}${age}`,
    short(row.effectiveLoad),
    short(row.kvUtilization),
    short(row.requestsInFlight),
    short(row.prefillTokensQueued),
    short(row.hitTokens),
  ];
  if (row.removedBy !== "") return [...signals, ...decision.scorers.map(() => "-"), `removed by ${row.removedBy}`];
  return [...signals, ...decision.scorers.map(({ name }) => short(row.scores[name])), short(row.total)];
}

function short(value: number | null | undefined): string {
  if (value === null || value === undefined) return "-";
  return Number.isInteger(value) ? String(value) : value.toFixed(4);
}
