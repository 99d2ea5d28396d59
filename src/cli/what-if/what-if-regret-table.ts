import type { Distribution } from "#sim/result/distribution.ts";
import type { DecisionRegret } from "#shadow/question/regret.ts";
import type { WhatIfAnswer } from "#shadow/question/what-if.ts";
import { figureTable, millis, percent, signedMillis } from "../figure-text.ts";

/** Decisions told with all that they had to choose from. */
const EXAMPLES = 3;

/** Regret by outcome of every candidate, and the worst decisions of the profile in force; nothing where none was asked. */
export function regretTables({ candidates, inForce }: WhatIfAnswer): string[] {
  const asked = candidates.filter(({ regret }) => regret !== undefined);
  if (asked.length === 0) return [];
  const own = ["better exists", "lost E2E mean", "p90", "max", "2nd choice"];
  const all = ["better for all", "lost by all, mean", "p90", "max", "2nd choice"];
  const table = figureTable(["profile", "decisions", ...own, ...all]);
  for (const { name, regret } of asked) {
    const { decisions, better, betterForAll, regret: alone, windowRegret, secondChangeMicros } = regret!;
    const [first, second] = [signedMillis(secondChangeMicros), signedMillis(regret!.secondWindowChangeMicros)];
    const row = [percent(better), ...spread(alone), first, percent(betterForAll), ...spread(windowRegret), second];
    table.push([name, String(decisions), ...row]);
  }
  const worst = candidates.find(({ name }) => name === inForce)?.regret?.worst.slice(0, EXAMPLES) ?? [];
  return [
    "Regret by outcome, with hindsight: single decisions made otherwise, all else by the profile, up to 1,000 requests " +
      "before and 200 after simulated again; lost against the best alternative, and the change with the second choice",
    table.toString(),
    ...worst.flatMap((one) => example(one, inForce)),
  ];
}

function spread(figures: Distribution | undefined): string[] {
  return figures === undefined ? ["-", "-", "-"] : [millis(figures.mean), millis(figures.p90), millis(figures.max)];
}

function example(
  { request, promptTokens, reason, choices, regretMicros, windowRegretMicros }: DecisionRegret,
  profile: string,
): string[] {
  const heads = [
    "endpoint",
    "in flight",
    "hit tokens",
    "KV used",
    "score",
    "TTFT",
    "E2E",
    "others' E2E",
    "all together",
  ];
  const table = figureTable(heads);
  choices.forEach(({ endpoint, requestsInFlight, hitTokens, kvUtilization, score, outcome }, i) => {
    const came =
      outcome === undefined
        ? ["", "", "", ""]
        : [
            millis(outcome.ttftMicros),
            millis(outcome.e2eMicros),
            i === 0 ? "" : `${signedMillis(outcome.affectedChangeMicros)} x ${outcome.affected}`,
            i === 0 ? "" : signedMillis(outcome.windowChangeMicros),
          ];
    const chosen = i === 0 ? `${endpoint} (chosen)` : endpoint;
    table.push([
      chosen,
      String(requestsInFlight),
      hitTokens.toFixed(0),
      percent(kvUtilization),
      score.toFixed(3),
      ...came,
    ]);
  });
  return [
    `${profile}, request ${request}, ${promptTokens} prompt tokens, decided by ${reason}: lost ${millis(regretMicros)} itself, ${millis(windowRegretMicros)} with those after it`,
    table.toString(),
  ];
}
