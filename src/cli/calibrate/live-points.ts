import { setTimeout } from "node:timers/promises";
import { MICROS_PER_MILLI, MILLIS_PER_SECOND } from "#core/base/units.ts";
import { CommandFailure } from "#serve/process/command-failure.ts";
import { roundSpeeds, type TimedPoint } from "#shadow/calibrate/steady-chance.ts";
import type { SteadyPoint } from "#shadow/calibrate/steady-fit.ts";
import { pauseMicros, type ProtocolPoint, steadyProtocol } from "#shadow/calibrate/steady-protocol.ts";
import { type Answered, timedAnswer, type MeasuredEngine, promptsOf } from "./live-engine.ts";

export interface LiveOptions extends MeasuredEngine {
  readonly sequencesMax: number;
  /** Of all points together. */
  readonly secondsMax: number;
  readonly progress: (line: string) => void;
}

/**
 * Each point so often, a while apart: a machine is slower now and then, by a tenth from one minute to the next. More often
 * where the rounds do not agree by then, as long as there is time.
 */
const ROUNDS_MIN = 4;
const ROUNDS_MAX = 12;
/** Rounds agree whose mean speed is known so well, as a logarithm. */
const AGREED = 0.01;

/**
 * Measures the points of the protocol one after another, and again, every other time from the last to the first, so that
 * a speed that rises or falls all the while moves all points alike. The engine should serve nobody else meanwhile. A
 * request of each length goes before, uncounted, since a first one compiles kernels. Throws CommandFailure.
 */
export async function livePoints(options: LiveOptions): Promise<TimedPoint[]> {
  const protocol = steadyProtocol(options);
  if (protocol === undefined)
    throw new CommandFailure(
      `--live: expected an engine that takes 512 tokens and 2 requests at once, got ${options.modelTokensMax} tokens, ` +
        `${options.sequencesMax} requests and a cache of ${options.cacheTokens ?? "unstated"} tokens`,
    );
  const until = performance.now() + options.secondsMax * MILLIS_PER_SECOND;
  const signal = AbortSignal.timeout(options.secondsMax * MILLIS_PER_SECOND);
  const prompts = promptsOf(options.seed);
  const points: TimedPoint[] = [];
  try {
    for (const point of protocol) await timedAnswer(options, prompts(point.promptTokens), 2, signal);
    const beganAt = performance.now();
    const nowMicros = () => Math.round(MICROS_PER_MILLI * (performance.now() - beganAt));
    for (let round = 0; round < ROUNDS_MAX; round++) {
      for (const point of round % 2 === 0 ? protocol : protocol.toReversed()) {
        const { users, requests, promptTokens } = point;
        options.progress(`${round + 1}: ${users} at once, ${requests} requests of ${promptTokens} tokens`);
        const beganMicros = nowMicros();
        const times = await measured(options, point, prompts, signal);
        points.push({ ...times, round, beganMicros, endedMicros: nowMicros() });
      }
      const each = (performance.now() - beganAt) / (round + 1);
      if (performance.now() + each > until) break;
      if (round + 1 >= ROUNDS_MIN && roundSpeeds(points).error < AGREED) break;
    }
  } catch (error) {
    if (!signal.aborted) throw error;
    const whole = points.length - (points.length % protocol.length);
    if (whole > 0) return points.slice(0, whole);
    throw new CommandFailure(
      `--live: expected ${protocol.length} points within ${options.secondsMax} s, got ${points.length}: --live-seconds gives more`,
    );
  }
  return points;
}

async function measured(
  options: LiveOptions,
  point: ProtocolPoint,
  prompts: (tokens: number) => number[],
  signal: AbortSignal,
): Promise<SteadyPoint> {
  const { users, requests, promptTokens, outputTokens } = point;
  const times: Answered[] = [];
  let begun = 0;
  const user = async () => {
    while (begun < requests) {
      const pause = pauseMicros(point, begun++);
      if (pause > 0) await setTimeout(pause / MICROS_PER_MILLI, undefined, { signal });
      times.push(await timedAnswer(options, prompts(promptTokens), outputTokens, signal));
    }
  };
  await Promise.all(Array.from({ length: users }, user));
  const mean = (of: (one: Answered) => number) => times.reduce((sum, one) => sum + of(one), 0) / times.length;
  return {
    ...point,
    outputTokens: Math.round(mean(({ tokens }) => tokens)),
    ttftMicros: MICROS_PER_MILLI * mean(({ firstMillis }) => firstMillis),
    tpotMicros:
      MICROS_PER_MILLI *
      mean(({ firstMillis, lastMillis, tokens }) => (lastMillis - firstMillis) / Math.max(1, tokens - 1)),
  };
}
