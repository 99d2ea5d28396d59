import { stringify } from "yaml";
import { ConfigError } from "#config/config-error.ts";
import { loadEngine } from "#config/engine-file.ts";
import type { EngineConfig } from "#engine/config.ts";
import { CommandFailure } from "#serve/process/command-failure.ts";
import type { EngineSource } from "#engine/engine-source.ts";
import { engineFields, residualsFile } from "#shadow/calibrate/engine-text.ts";
import { type SteadyChance, steadyChance, type TimedPoint } from "#shadow/calibrate/steady-chance.ts";
import {
  fitSteady,
  fitSteadyUnstated,
  STEADY_PARAMETERS,
  type SteadyFit,
  type SteadyPoint,
  TooFewPoints,
} from "#shadow/calibrate/steady-fit.ts";
import { writeOutput } from "#drive/output-file.ts";
import { figureTable, millisOf, percentOf, signedPercentOf } from "../output/figure-text.ts";
import { benchPoints } from "./bench-points.ts";
import { givenSizes, type SizeFlags } from "./engine-sizes.ts";
import { liveEngine } from "./live-engine.ts";
import { livePoints } from "./live-points.ts";
import { shownSizes } from "./live-sizes.ts";

export interface PointFlags extends SizeFlags {
  readonly fromBench?: readonly string[];
  readonly live?: string;
  readonly liveSeconds: number;
  readonly apiKeyEnv?: string;
  readonly engine?: string;
  readonly output?: string;
  readonly json?: string;
}

/** Fits an engine to a few measured points: of results of `vllm bench serve`, or measured here on a running engine. */
export async function calibratePoints(flags: PointFlags): Promise<void> {
  const usual = flags.engine === undefined ? { asyncScheduling: true } : {};
  const given = { ...loadEngine(flags.engine), ...usual, ...givenSizes(flags) };
  const live = flags.live === undefined ? undefined : await measuredLive(flags.live, given, flags);
  const points: readonly SteadyPoint[] = live?.points ?? benchPoints(flags.fromBench ?? []);
  const { sizes, from } = live ?? { sizes: given, from: (flags.fromBench ?? []).join(" and ") };
  const longest = Math.max(...points.map(({ promptTokens, outputTokens }) => promptTokens + outputTokens));
  const room = Math.max(sizes.kvBlocks, Math.ceil(mostTokens(points) / sizes.blockTokens) + 2);
  const fitting = { ...sizes, kvBlocks: room, modelTokensMax: Math.max(longest, sizes.modelTokensMax) };
  const isStated = flags.asyncScheduling !== undefined || flags.engine !== undefined;
  const fit = fitted(
    points,
    { ...fitting, modelTokensMax: Math.min(fitting.modelTokensMax, (room - 1) * sizes.blockTokens) },
    isStated,
  );
  report(fit, points, from, live && leftToChance(live.points, live.startedAt, fit), flags);
}

/** What is stated of a measurement that wandered. */
interface LeftToChance {
  readonly lines: readonly string[];
  readonly fields: Readonly<Record<string, unknown>>;
  readonly chance: SteadyChance | undefined;
}

/** Rounds that are further apart than this, as logarithms, are worth a word: means of loads differ as much. */
const APART_NOTED = 0.05;

function leftToChance(points: readonly TimedPoint[], startedAt: string, fit: SteadyFit): LeftToChance {
  const chance = steadyChance(points, fit);
  if (chance === undefined) {
    const line =
      "Asked once: how its speed wanders did not show, and predictions have no intervals; --live-seconds gives more.";
    return { lines: [line], fields: {}, chance };
  }
  const { rounds, residuals } = chance;
  const apart = Math.max(...rounds) - Math.min(...rounds);
  const each = rounds.map((level) => signedPercentOf(Math.exp(level) - 1)).join(", ");
  const words = `Answers took ${percentOf(Math.exp(apart) - 1)} longer in one round than in another (against the mean: ${each})`;
  const known = `the mean is known to +-${percentOf(residuals.levelError)}`;
  const lines = [`${words}; ${known}.`];
  if (apart > APART_NOTED)
    lines.push(
      "That is the machine's own speed, which moves: the file has its mean. At another time it may be as far off; what-if takes the speed from a trace.",
    );
  const source: EngineSource = { runs: [{ run: LIVE_RUN, startedAt }] };
  return { lines, fields: { residuals: residualsFile(residuals), source }, chance };
}

/** Its name as a run: no trace has it. */
const LIVE_RUN = "calibrate --live";

async function measuredLive(address: string, given: EngineConfig, flags: PointFlags) {
  if (!URL.canParse(address) || !/^https?:$/.test(new URL(address).protocol))
    throw new ConfigError([`--live: expected a URL such as http://127.0.0.1:8000, got ${address}`]);
  const url = address.replace(/\/+$/, "");
  const apiKey = keyIn(flags.apiKeyEnv);
  const seen = await liveEngine(url, apiKey);
  const blockTokens = flags.blockTokens ?? seen.blockTokens ?? given.blockTokens;
  const kvBlocks = flags.kvBlocks ?? seen.kvBlocks ?? given.kvBlocks;
  const stated = flags.modelTokensMax ?? seen.modelTokensMax ?? given.modelTokensMax;
  const modelTokensMax = Math.min(stated, (kvBlocks - 1) * blockTokens);
  const cacheTokens = seen.kvBlocks === undefined ? undefined : kvBlocks * blockTokens;
  const asks = { url, apiKey, model: seen.model, modelTokensMax, cacheTokens, seed: Math.floor(Date.now() / 1000) };
  const areStated =
    flags.engine !== undefined || (flags.sequencesMax !== undefined && flags.batchTokensMax !== undefined);
  const shown = areStated ? undefined : await shownSizes(asks);
  for (const line of shown?.notes ?? []) process.stderr.write(`note: ${line}\n`);
  const sequencesMax = flags.sequencesMax ?? shown?.sequencesMax ?? given.sequencesMax;
  const batchTokensMax = flags.batchTokensMax ?? shown?.batchTokensMax ?? given.batchTokensMax;
  const sizes = { ...given, blockTokens, kvBlocks, modelTokensMax, sequencesMax, batchTokensMax };
  const startedAt = new Date().toISOString();
  const points = await livePoints({
    ...asks,
    sequencesMax,
    secondsMax: flags.liveSeconds,
    progress: (line) => process.stderr.write(`${line}\n`),
  });
  return { points, sizes, startedAt, from: `${seen.model} at ${url}` };
}

function keyIn(variable: string | undefined): string | undefined {
  if (variable === undefined) return undefined;
  const key = process.env[variable] ?? "";
  if (key === "")
    throw new ConfigError([`--api-key-env: expected the name of a variable that is set, got ${variable}`]);
  return key;
}

/** Tokens that are in flight at once, at most. */
function mostTokens(points: readonly SteadyPoint[]): number {
  return Math.max(...points.map(({ users, promptTokens, outputTokens }) => users * (promptTokens + outputTokens)));
}

function fitted(points: readonly SteadyPoint[], sizes: EngineConfig, isStated: boolean): SteadyFit {
  try {
    if (isStated) return fitSteady(points, sizes);
    const { fit, otherwiseOff } = fitSteadyUnstated(points, sizes);
    const { asyncScheduling } = fit.engine;
    process.stderr.write(
      `note: asyncScheduling ${asyncScheduling}: not stated; points ${percentOf(fit.off)} off, else ${percentOf(otherwiseOff)}\n`,
    );
    return fit;
  } catch (error) {
    if (!(error instanceof TooFewPoints)) throw error;
    throw new CommandFailure(`${error.message}, got ${points.length} results of one kind`);
  }
}

function report(
  fit: SteadyFit,
  points: readonly SteadyPoint[],
  from: string,
  left: LeftToChance | undefined,
  flags: PointFlags,
): void {
  const assumed = STEADY_PARAMETERS.flatMap((name) =>
    fit.assumed[name] === undefined ? [] : [`${name}: ${fit.assumed[name]}`],
  );
  const off = points.map((point, i) => ({
    ttft: fit.predicted[i]!.ttftMicros / point.ttftMicros - 1,
    tpot: fit.predicted[i]!.tpotMicros / point.tpotMicros - 1,
  }));
  const most = (name: "ttft" | "tpot") =>
    signedPercentOf(off.reduce((a, b) => (Math.abs(b[name]) > Math.abs(a) ? b[name] : a), 0));
  const comment = [
    `Fitted by gnomon to ${points.length} measurements of ${from}.`,
    `Measured error on those, at most: TTFT ${most("ttft")}, TPOT ${most("tpot")}. Not validated on another load.`,
    ...(left?.lines ?? []),
    ...assumed.map((line) => `Assumed: ${line}.`),
  ];
  for (const line of left?.lines ?? []) process.stderr.write(`note: ${line}\n`);
  for (const line of assumed) process.stderr.write(`note: assumed ${line}\n`);
  const text = `${comment.map((line) => `# ${line}`).join("\n")}\n${stringify({ ...engineFields(fit.engine), ...left?.fields }, { lineWidth: 0 })}`;
  if (flags.json !== undefined) {
    const { parameters, predicted } = fit;
    writeOutput(
      flags.json,
      `${JSON.stringify({ parameters, assumed: fit.assumed, points, predicted, rounds: left?.chance?.rounds })}\n`,
    );
  }
  if (flags.output !== undefined) writeOutput(flags.output, text);
  else if (flags.json !== "-") process.stdout.write(text);
  const table = figureTable(["at once x prompt + answer", "TTFT ms", "fitted", "TPOT ms", "fitted"]);
  points.forEach(({ users, promptTokens, outputTokens, pauseMicrosMax, ttftMicros, tpotMicros }, i) => {
    const predicted = fit.predicted[i]!;
    table.push([
      `${users} x ${promptTokens} + ${outputTokens}${pauseMicrosMax === undefined ? "" : ", pausing"}`,
      millisOf(ttftMicros),
      millisOf(predicted.ttftMicros),
      millisOf(tpotMicros),
      millisOf(predicted.tpotMicros),
    ]);
  });
  process.stderr.write(`${table.toString()}\n`);
}
