import type { Distribution } from "#sim/result/distribution.ts";
import type { DecisionRegret } from "#shadow/job/regret.ts";
import type { WhatIfAnswer } from "#shadow/question/what-if.ts";
import { brokenName, figureTable, millisOf, percentOf, signedMillis, wrapped } from "../output/figure-text.ts";

/** Decisions printed with all that they had to choose from. */
const EXAMPLES = 3;
const WIDTHS = [22, 11, 15, 12, 10, 11, 11] as const;

/** Regret by outcome of every candidate, and the worst decisions of the profile in force; nothing where none was asked. */
export function regretTables({ candidates, inForce }: WhatIfAnswer): string[] {
  const asked = candidates.filter(({ regret }) => regret !== undefined);
  if (asked.length === 0) return [];
  const heads = ["profile", "decisions", "better exists", "lost, mean", "p90", "max", "2nd choice"];
  const [own, all] = [figureTable(heads, WIDTHS), figureTable(heads, WIDTHS)];
  for (const { name, regret } of asked) {
    const { decisions, better, betterForAll, regret: alone, windowRegret, secondChangeMicros } = regret!;
    const [first, second] = [signedMillis(secondChangeMicros), signedMillis(regret!.secondWindowChangeMicros)];
    own.push([brokenName(name, WIDTHS[0]), String(decisions), percentOf(better), ...spread(alone), first]);
    all.push([
      brokenName(name, WIDTHS[0]),
      String(decisions),
      percentOf(betterForAll),
      ...spread(windowRegret),
      second,
    ]);
  }
  const worst = candidates.find(({ name }) => name === inForce)?.regret?.worst.slice(0, EXAMPLES) ?? [];
  return [
    wrapped(
      "Regret by outcome, with hindsight: single counterfactual decisions, all else by the profile, up to 1,000 requests " +
        "before and 200 after simulated again; lost against the best alternative, and the change with the second choice. " +
        "E2E of the request itself:",
    ),
    own.toString(),
    "With all after it, summed:",
    all.toString(),
    ...worst.flatMap((one) => example(one, inForce)),
  ];
}

function spread(figures: Distribution | undefined): string[] {
  return figures === undefined
    ? ["-", "-", "-"]
    : [millisOf(figures.mean), millisOf(figures.p90), millisOf(figures.max)];
}

function example(
  { request, promptTokens, reason, choices, regretMicros, windowRegretMicros }: DecisionRegret,
  profile: string,
): string[] {
  const heads = ["endpoint", "in flight", "hit tokens", "KV used", "score", "TTFT", "E2E", "others' E2E", "all"];
  const table = figureTable(heads, [22, 8, 8, 9, 7, 9, 9, 9, 9]);
  choices.forEach(({ endpoint, requestsInFlight, hitTokens, kvUtilization, score, outcome }, i) => {
    const came =
      outcome === undefined
        ? ["", "", "", ""]
        : [
            millisOf(outcome.ttftMicros),
            millisOf(outcome.e2eMicros),
            i === 0 ? "" : `${signedMillis(outcome.affectedChangeMicros)} x ${outcome.affected}`,
            i === 0 ? "" : signedMillis(outcome.windowChangeMicros),
          ];
    const chosen = brokenName(i === 0 ? `${endpoint} (chosen)` : endpoint, 22);
    table.push([
      chosen,
      String(requestsInFlight),
      hitTokens.toFixed(0),
      percentOf(kvUtilization),
      score.toFixed(3),
      ...came,
    ]);
  });
  return [
    wrapped(
      `${profile}, request ${request}, ${promptTokens} prompt tokens, decided by ${reason}: lost ${millisOf(regretMicros)} itself, ${millisOf(windowRegretMicros)} with those after it`,
    ),
    table.toString(),
  ];
}
