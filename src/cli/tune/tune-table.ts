import { causeWords } from "#shadow/report/cause-words.ts";
import type { TopologyRow } from "#shadow/tune/topology.ts";
import { isShare, type Objective } from "#shadow/job/objective.ts";
import type { GainPart } from "#shadow/tune/gain-parts.ts";
import type { TuneAnswer } from "#shadow/tune/tune.ts";
import type { HeldOut } from "#shadow/tune/verdict.ts";
import { originText } from "./tune-output.ts";
import { figureTable, millisOf, percentOf, signedPercentOf, wrapped } from "../output/figure-text.ts";

const CAUSES_PRINTED = 3;
const VERDICTS = {
  better: "BETTER",
  uncertain: "UNCERTAIN: nothing is recommended",
  nothing: "NOTHING TO BE GAINED",
  refused: "REFUSED",
} as const;

/** The answer for people: the verdict, how sure it is, which requests gain, and why. */
export function tuneTable(answer: TuneAnswer): string {
  const { verdict, winner, heldOut, objective } = answer;
  const parts = [
    wrapped(`${VERDICTS[verdict.kind]}: ${verdict.reasons.join("; ")}.`),
    "",
    wrapped(traffic(answer)),
    ...(answer.search === undefined ? [] : [wrapped(searched(answer))]),
    wrapped(doubts(answer)),
    ...(winner === undefined ? [] : ["", wrapped(`Best found: ${originText(winner)}.`)]),
    ...(winner === undefined ? [] : [policyText(answer)]),
    ...(heldOut === undefined ? [] : [sureness(answer, heldOut), figures(heldOut), why(objective, heldOut)]),
  ];
  return `${parts.join("\n")}\n`;
}

function traffic({ requests, split, inForce }: TuneAnswer): string {
  const { searchSessions, heldOutSessions, heldOutRequests, isRepeated } = split;
  const repeated = isRepeated
    ? " Conversations overlap, so those to search on come twice, the second time with text of their own: the load is that of the whole."
    : "";
  return (
    `${requests} requests; in force: ${inForce}. Searched on ${searchSessions} conversations, judged on the ` +
    `${heldOutSessions} that began later (${heldOutRequests} requests).${repeated}`
  );
}

function searched({ search }: TuneAnswer): string {
  const { policies = 0, trials = 0, remembered = 0, isSettled = false } = search ?? {};
  const known = remembered === 0 ? "" : `, ${remembered} more known from before`;
  const end = isSettled ? "nothing better came for some rounds" : "its time or its trials were used up";
  return `${policies} policies in ${trials} simulations${known}; ${end}.`;
}

function doubts({ doubt }: TuneAnswer): string {
  const measured =
    doubt.measured === undefined
      ? "nothing was observed that it could be checked by"
      : `predicted mean E2E of the profile in force ${signedPercentOf(Math.exp(doubt.measured) - 1)} off`;
  return `Engine model: ${measured}; drawn with step times ${percentOf(doubt.level)} off (standard deviation), prefill ${percentOf(doubt.prefill)}.`;
}

function policyText({ winner }: TuneAnswer): string {
  const { filters, scorers, picker } = winner!.candidate.spec;
  const plugin = ({ plugin: name, parameters }: { plugin: string; parameters: object }) =>
    Object.keys(parameters).length === 0 ? name : `${name} ${JSON.stringify(parameters)}`;
  return [
    `  filters: ${filters.map(plugin).join(", ") || "none"}`,
    `  scorers: ${scorers.map((one) => `${one.weight} x ${plugin(one)}`).join(", ")}`,
    `  picker:  ${plugin(picker)}`,
  ].join("\n");
}

function sureness({ winner, objective }: TuneAnswer, { gain, bySessions, byTime, replicas }: HeldOut): string {
  const unit = isShare(objective) ? "of all requests" : "of the figure in force";
  const table = figureTable(["gain", "", "95 % interval", "chance", "units"]);
  const row = (name: string, one: typeof gain) =>
    table.push([
      name,
      signedPercentOf(one.value),
      `${signedPercentOf(one.low)} to ${signedPercentOf(one.high)}`,
      percentOf(one.chance),
      String(one.units),
    ]);
  row("by conversation", bySessions);
  row("by stretch of time", byTime);
  const worst = Math.min(...replicas);
  return [
    table.toString(),
    wrapped(
      `The gain is a part ${unit}, on conversations that the search did not see, averaged over drawn engines. The tables ` +
        `below are of one engine, the one that was fitted, so that their changes may be larger or smaller. The interval holds what is chance over ` +
        `conversations and over ${replicas.length} drawn engines (the worst of them: ${signedPercentOf(worst)}). Where it was ` +
        `searched it was ${signedPercentOf(winner!.gain)}; so good a best one by chance: ${percentOf(winner!.chanceOfBest)} among ` +
        `the finalists, at most ${percentOf(winner!.chanceOfAll)} among all policies (Bonferroni).`,
    ),
  ].join("\n");
}

function figures({ parts }: HeldOut): string {
  const table = figureTable(["held out, fitted engine, ms", "in force", "found", "change"]);
  const names = { ttftMicros: "TTFT", tpotMicros: "TPOT", e2eMicros: "E2E" } as const;
  for (const [metric, name] of Object.entries(names) as [keyof typeof names, string][]) {
    for (const figure of ["mean", "p99"] as const) {
      const before = parts.figures.before[metric]?.[figure];
      const after = parts.figures.after[metric]?.[figure];
      if (before === undefined || after === undefined) continue;
      table.push([`${name} ${figure}`, millisOf(before), millisOf(after), signedPercentOf(after / before - 1)]);
    }
  }
  table.push(["cached prompt tokens", percentOf(parts.hitRatio.before), percentOf(parts.hitRatio.after), ""]);
  return table.toString();
}

function why(objective: Objective, { parts }: HeldOut): string {
  const text = (loss: number) => (isShare(objective) ? percentOf(1 - loss) : millisOf(loss));
  const head = isShare(objective) ? "met their targets" : "ms";
  const table = figureTable(["who gains", "requests", `in force, ${head}`, "found", "part of the gain"]);
  const row = ({ label, requests, before, after, share }: GainPart) =>
    table.push([label, String(requests), text(before), text(after), percentOf(share)]);
  parts.byPrompt.forEach(row);
  parts.byTurn.forEach(row);
  const endpoints = figureTable(["endpoint", "requests", "found", `in force, ${head}`, "found"]);
  for (const one of parts.byEndpoint) {
    const counts = [String(one.requestsBefore), String(one.requestsAfter)];
    endpoints.push([one.endpoint, ...counts, text(one.before), text(one.after)]);
  }
  const causes = parts.causes.slice(0, CAUSES_PRINTED).map((cause) => `  ${causeWords(cause)}`);
  return [table.toString(), endpoints.toString(), "Why, the largest parts of the mean E2E difference:", ...causes].join(
    "\n",
  );
}

/** How many engines of which kind the traffic needs. */
export function topologyTable(
  rows: readonly TopologyRow[],
  objective: Objective,
  best: TopologyRow | undefined,
  goodputMin: number,
): string {
  const good = isShare(objective);
  const head = [
    "fleet",
    "profile",
    good ? "goodput" : "loss, ms",
    "at worst",
    "TTFT",
    "TTFT p99",
    "TPOT",
    "E2E",
    "engine s/request",
  ];
  const table = figureTable(head);
  const text = (loss: number) => (good ? percentOf(1 - loss) : millisOf(loss));
  for (const row of rows) {
    const times = [row.ttftMeanMicros, row.ttftP99Micros, row.tpotMeanMicros, row.e2eMeanMicros].map(millisOf);
    const cost = row.engineSecondsPerRequest.toFixed(3);
    table.push([row.fleet, row.profile, text(row.loss), text(row.lossMost), ...times, cost]);
  }
  const choice = !good
    ? []
    : [
        best === undefined
          ? `None of these fleets reaches a goodput of ${percentOf(goodputMin)} on every drawn engine.`
          : `Fewest engines with a goodput of ${percentOf(goodputMin)} on every drawn engine: ${best.fleet}, ${best.profile}.`,
      ];
  return `${[table.toString(), ...choice].join("\n")}\n`;
}
