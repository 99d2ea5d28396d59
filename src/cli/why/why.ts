import { existsSync } from "node:fs";
import type { Command } from "commander";
import { ConfigError } from "#config/config-error.ts";
import { loadProfile } from "#config/profile-file.ts";
import type { Endpoint } from "#core/endpoint/endpoint.ts";
import { CommandFailure } from "#serve/process/command-failure.ts";
import type { FigureAsked } from "#shadow/why/figure-asked.ts";
import { recordedLedger } from "#shadow/why/recorded-ledger.ts";
import { simulatedLedger } from "#shadow/why/simulated-ledger.ts";
import { slowAnswers } from "#shadow/why/slow-answers.ts";
import { BEYOND_LIMIT, type TokenLedger } from "#shadow/why/token-ledger.ts";
import { knewTooLittle, tokenSummary } from "#shadow/why/token-summary.ts";
import { CAUSES } from "#shadow/why/world.ts";
import { writeOutputs } from "#drive/output-file.ts";
import { TraceReader } from "#trace/reader.ts";
import { isTrace } from "#trace/segment-name.ts";
import { asked } from "../flag/asked-request.ts";
import { doLongWork, type LongWork } from "../long-work/long-work.ts";
import { checkOutputFile } from "../output/check-output-file.ts";
import { ownTrafficOf } from "../rollout/own-traffic.ts";
import { notesOf, type Traffic } from "../what-if/what-if-traffic.ts";
import { type WhyFlags, whyOptions } from "./why-flags.ts";
import { explanationText } from "./why-text.ts";
import type { WhyAnswer } from "#shadow/why/why-answer.ts";

/** Explains lost cached tokens and slow answers of recorded traffic. */
export function whyCommand(): Command {
  return whyOptions().action(answer);
}

async function answer(path: string, flags: WhyFlags): Promise<void> {
  if (!existsSync(path))
    throw new ConfigError([`why: expected a trace or a workload, got ${path}, which is not there`]);
  checkOutputFile("--output", flags.output);
  checkOutputFile("--json", flags.json);
  const startedAt = performance.now();
  const result = await doLongWork(flags, async (work) => {
    const traffic = await ownTrafficOf(path, flags, work);
    const notes = notesOf(traffic);
    for (const line of notes) process.stderr.write(`note: ${line}\n`);
    return explained(path, traffic, flags, notes, work);
  });
  writeOutputs(flags, `${JSON.stringify(result)}\n`);
  if (flags.json !== "-" && flags.output !== "-") process.stdout.write(explanationText(result));
  const { worlds } = result.slow;
  const seconds = ((performance.now() - startedAt) / 1000).toFixed(1);
  process.stderr.write(`${result.tokens.requests} requests, ${worlds} simulations in ${seconds} s\n`);
}

async function explained(
  path: string,
  traffic: Traffic,
  flags: WhyFlags,
  notes: readonly string[],
  work: LongWork,
): Promise<WhyAnswer> {
  const { setting, inForce, observed, requestIds } = traffic;
  const place = placeOf(flags.request, path, traffic);
  const ledger = await ledgerOf(path, traffic, flags);
  for (const line of untokened(ledger)) process.stderr.write(`note: ${line}\n`);
  const against = loadProfile(flags.against);
  const worldsMax = Math.max(WORLDS_MIN, Math.floor(flags.work / setting.workload.length));
  const all = tokenSummary(ledger.rows);
  const steps = slowAnswers({
    isIndexWrong: knewTooLittle(all),
    setting,
    inForce,
    otherwise: { name: against.name, spec: against.spec },
    observed,
    figure: figureAsked(flags),
    ...(place !== undefined && { requests: [place] }),
    worldsMax,
    replicas: flags.replicas ?? Math.min(REPLICAS_DEFAULT_MAX, Math.floor(worldsMax / 2 ** CAUSES.length)),
    seed: flags.seed,
    refittable: traffic.engine.isSchedulingFound === true ? "times and scheduling" : "times",
  });
  const slow = await work.inTurns(steps, "simulations");
  const requestId = place === undefined ? undefined : requestIds?.[place];
  const row = requestId === undefined ? undefined : ledger.rows.find((one) => one.requestId === requestId);
  return {
    inForce: inForce.name,
    against: against.name,
    tokens: row === undefined ? all : tokenSummary([row]),
    ...(row && { request: row }),
    slow,
    ahead: slow.ahead.longest.map(({ index }) => requestIds?.[index] ?? `request ${index + 1}`),
    left: { ...traffic.left, ...ledger.left },
    notes: [...notes, ...untokened(ledger)],
  };
}

/** Requests whose tokens are not explained. */
function untokened({ left }: TokenLedger): string[] {
  return Object.entries(left)
    .filter(([reason]) => reason !== BEYOND_LIMIT)
    .map(([reason, count]) => `${count} without their tokens explained: ${reason}`);
}

/** Fewer show no more than which of two causes is the larger. */
const WORLDS_MIN = 8;
const REPLICAS_DEFAULT_MAX = 8;
const NAMED_MAX = 8;

function placeOf(request: string | undefined, path: string, { requestIds, left }: Traffic): number | undefined {
  if (request === undefined) return undefined;
  if (requestIds === undefined)
    throw new ConfigError([`--request: expected together with a recorded trace, got the workload ${path}`]);
  const [found, ...more] = asked(request, requestIds);
  if (more.length > 0) {
    const named = [found, ...more].slice(0, NAMED_MAX).join(", ");
    throw new CommandFailure(
      `--request: expected one of ${named}${more.length < NAMED_MAX ? "" : ", ..."}, which its client gave one x-request-id, got ${request}`,
    );
  }
  if (found !== undefined) return requestIds.indexOf(found);
  const others = Object.values(left).reduce((sum, count) => sum + count, 0);
  throw new CommandFailure(
    `--request: expected one of the ${requestIds.length} requests of ${path} that can be simulated, by its answer's x-request-id or id, got ${request}` +
      (others === 0 ? "" : `; ${others} others cannot be`),
  );
}

function figureAsked({ objective, percentile }: WhyFlags): FigureAsked {
  const [time, of] = objective.split("-") as ["ttft" | "e2e", "mean" | "p99"];
  return { time, of: percentile ?? (of === "mean" ? "mean" : 99) };
}

async function ledgerOf(path: string, { setting, inForce }: Traffic, flags: WhyFlags): Promise<TokenLedger> {
  const { engine, blockTokens } = setting;
  const capacityOf = ({ kvCapacityTokens }: Endpoint): number => {
    const own = engine.dataParallel * (engine.kvBlocks - 1) * engine.blockTokens;
    return Math.max(1, Math.floor((flags.kvBlocks === undefined ? (kvCapacityTokens ?? own) : own) / blockTokens));
  };
  if (!(await isTrace(path))) return simulatedLedger(setting, inForce, capacityOf, flags.limit);
  try {
    return await recordedLedger(new TraceReader(path).items(), capacityOf, flags.limit);
  } catch (error) {
    throw new CommandFailure(error instanceof Error ? error.message : String(error));
  }
}
