import { existsSync } from "node:fs";
import type { Command } from "commander";
import { ConfigError } from "#config/config-error.ts";
import type { Candidate, CandidateOutcome, Setting } from "#shadow/candidate/candidate.ts";
import { type WhatIfAnswer, type WhatIfQuestion, whatIf } from "#shadow/question/what-if.ts";
import { CommandFailure } from "#serve/process/command-failure.ts";
import { checkOutputFile } from "../output/check-output-file.ts";
import { doLongWork, type LongWork } from "../long-work/long-work.ts";
import { MICROS_PER_MILLI } from "#core/base/units.ts";
import { parseSlo } from "../flag/slo-flag.ts";
import { type Autoscaled, chosenForHpa, hpaManifest } from "./hpa-manifest.ts";
import { type WhatIfFlags, whatIfOptions } from "./what-if-flags.ts";
import { writeWhatIfPage } from "./what-if-html.ts";
import { whatIfScreen } from "./what-if-screen.ts";
import { whatIfTable } from "./what-if-table.ts";
import { candidatesOf, notesOf, signalsUsed, type Traffic, trafficOf } from "./what-if-traffic.ts";
import { writeOutput } from "#drive/output-file.ts";
import { writeWholeFile } from "#trace/export/whole-file.ts";

/** Asks what other profiles would have done with recorded traffic. */
export function whatIfCommand(): Command {
  return whatIfOptions().action(answer);
}

async function answer(path: string, flags: WhatIfFlags): Promise<void> {
  const html = flags.html ?? (flags.output?.endsWith(".html") === true ? flags.output : undefined);
  if (html === "-") throw new ConfigError(["--html: expected a file, got -, which --json alone accepts"]);
  checkOutputFile("--html", flags.html);
  checkOutputFile("--output", flags.output);
  checkOutputFile("--json", flags.json);
  checkHpa(flags);
  if (flags.objective === "goodput" && flags.slo === undefined)
    throw new ConfigError(["--objective goodput: expected together with --slo, by which requests count"]);
  const startedAt = performance.now();
  let outcomes: readonly CandidateOutcome[] = [];
  const { asked, result } = await doLongWork(flags, async (work) => {
    const asked = await questionOf(path, flags, work);
    for (const line of asked.notes) process.stderr.write(`note: ${line}\n`);
    const result = await whatIf({
      ...asked.question,
      keeping: work,
      ...(html !== undefined && { onOutcomes: (all) => (outcomes = all) }),
      simulated: meansSoFar(work),
      progress: (done, all) => work.progress(`${done} of ${all} simulations`),
    });
    return { asked, result };
  });
  const { notes, traffic, question } = asked;
  const { setting, candidates } = question;
  const { name: engine, isGuess: isEngineGuess } = traffic.engine;
  for (const file of new Set([flags.json, flags.output])) {
    if (file !== undefined && file !== html) writeOutput(file, `${answerText(asked, result)}\n`);
  }
  if (html !== undefined) {
    const { observed, inForce } = question;
    const profiles = [inForce, ...candidates];
    writeWhatIfPage(html, result, { path, engine, isEngineGuess, setting, profiles, outcomes, observed, notes });
  }
  if (flags.hpa !== undefined) writeWholeFile(flags.hpa, hpaText(candidates, result, flags));
  const seconds = ((performance.now() - startedAt) / 1000).toFixed(1);
  const { replicas = 0 } = question;
  const runs = `${result.candidates.length} candidates${replicas === 0 ? "" : ` x ${1 + replicas} simulations`}`;
  const lastLine = `${setting.workload.length} requests x ${runs} in ${seconds} s`;
  if (flags.json !== "-" && flags.output !== "-") {
    const guessed = isEngineGuess ? engine : undefined;
    const { objective, all = !process.stdout.isTTY } = flags;
    const { router } = traffic;
    const options = { ...(guessed && { guessed }), ...(objective && { objective }), ...(router && { router }) };
    const beside = [...notes.map((line) => `note: ${line}`), lastLine];
    const screen = { terminal: process.stdout, beside };
    process.stdout.write(all ? whatIfTable(result, options) : whatIfScreen(result, { ...options, ...screen }));
  }
  process.stderr.write(`${lastLine}\n`);
}

interface Asked {
  readonly traffic: Traffic;
  readonly question: WhatIfQuestion;
  /** To be printed beside the answer. */
  readonly notes: readonly string[];
}

/** The same answer, as --json writes it, in this thread alone. */
export async function whatIfText(path: string, flags: WhatIfFlags): Promise<string> {
  const asked = await questionOf(path, flags);
  return answerText(asked, await whatIf({ ...asked.question, threadsMax: 1 }));
}

function answerText({ traffic, notes }: Asked, result: WhatIfAnswer): string {
  return JSON.stringify({ ...result, left: traffic.left, notes });
}

/** Keeps what is known of the candidates that were simulated, for who interrupts the rest. */
function meansSoFar(work: LongWork): (outcome: CandidateOutcome) => void {
  const means: string[] = [];
  return ({ name, e2eMicros, completed }) => {
    const sum = e2eMicros.reduce((all, micros) => all + (Number.isNaN(micros) ? 0 : micros), 0);
    means.push(`${name} ${(sum / completed / MICROS_PER_MILLI).toFixed(0)} ms`);
    work.soFar(`mean E2E so far, on the engine as it was fitted, without intervals: ${means.join(", ")}`);
  };
}

async function questionOf(path: string, flags: WhatIfFlags, work?: LongWork): Promise<Asked> {
  if (!existsSync(path))
    throw new ConfigError([`what-if: expected a trace or a workload, got ${path}, which is not there`]);
  const targets = flags.slo === undefined ? undefined : parseSlo(flags.slo);
  const traffic = await trafficOf(path, flags, work);
  const { setting, observed, inForce } = traffic;
  const candidates = candidatesOf(traffic, flags);
  const { replicas, note } = replicasFor(setting, 1 + candidates.length, traffic.engine.name, flags);
  const question: WhatIfQuestion = {
    setting,
    inForce,
    candidates,
    observed,
    replicas,
    ...(flags.regret > 0 && { regret: { decisions: flags.regret, alternatives: flags.counterfactualK } }),
    ...(targets && { targets }),
    ...(flags.threads !== undefined && { threadsMax: flags.threads }),
  };
  return { traffic, question, notes: [...notesOf(traffic), ...signalsUsed(traffic, flags), ...note] };
}

function checkHpa({ hpa, slo, autoscale }: WhatIfFlags): void {
  if (hpa === undefined) return;
  checkOutputFile("--hpa", hpa);
  if (slo === undefined) throw new ConfigError(["--hpa: expected together with --slo, by which targets are chosen"]);
  if (!autoscale.some((policy) => policy.startsWith("queue-depth")))
    throw new ConfigError(["--hpa: expected together with --autoscale queue-depth:target_per_replica=..."]);
}

/** Of the profile in force. */
function hpaText(candidates: readonly Candidate[], result: WhatIfAnswer, { hpaDeployment }: WhatIfFlags): string {
  const asked = candidates.flatMap(({ name, scenario }): Autoscaled[] => {
    const answer = result.candidates.find((one) => one.name === name);
    const isInForce = name === `${result.inForce}, ${scenario?.label}`;
    return scenario?.scaling === undefined || answer === undefined || !isInForce ? [] : [{ scenario, answer }];
  });
  const chosen = chosenForHpa(asked);
  if (chosen === undefined) throw new CommandFailure("--hpa: nothing to choose from");
  return hpaManifest(chosen, hpaDeployment);
}

const REPLICAS_DEFAULT = 40;
/** Fewer give an interval that is wider than it need be. */
const REPLICAS_MIN = 3;
/** Requests that replicas simulate together, unless more are asked for. */
const REPLICA_REQUESTS = 200_000;

/** How many replicas, and the notes to print about it. */
function replicasFor(
  { workload, residuals }: Setting,
  candidates: number,
  engine: string,
  { replicas }: WhatIfFlags,
): { readonly replicas: number; readonly note: readonly string[] } {
  if (residuals === undefined) {
    const how = "calibrate writes them, or --step-error 0.05 states one";
    return {
      replicas: 0,
      note: [`no prediction intervals: the engine ${engine} does not state how far its step times are off; ${how}`],
    };
  }
  if (replicas !== undefined) return { replicas, note: [] };
  const affordable = Math.min(REPLICAS_DEFAULT, Math.floor(REPLICA_REQUESTS / (workload.length * candidates)));
  if (affordable >= REPLICAS_MIN) return { replicas: affordable, note: [] };
  const much = `${workload.length} requests x ${candidates} candidates would be simulated many times over`;
  return { replicas: 0, note: [`no prediction intervals: ${much}; --replicas ${REPLICAS_MIN} or more has them`] };
}
