import type { Logger } from "pino";
import { loadEngine } from "#config/engine-file.ts";
import { loadProfile } from "#config/profile-file.ts";
import type { Config } from "#config/schema.ts";
import { MICROS_PER_SECOND } from "#core/units.ts";
import type { Journal } from "#live/journal.ts";
import type { Run } from "#live/run-lines.ts";
import type { ShadowEvaluation, ShadowStatus } from "#live/shadow-status.ts";
import { TraceFeed } from "#live/trace-feed.ts";
import { ShadowHost } from "#shadow/host.ts";
import type { WhatIfAnswer } from "#shadow/what-if.ts";

/** The shadow of a running gateway. */
export interface LiveShadow {
  readonly status: () => ShadowStatus;
  close(): Promise<void>;
}

/** Starts the shadow's thread and lets it hear the journal; undefined where the configuration has none. */
export function startShadow(
  { shadow, scrape }: Config,
  run: Run,
  journal: Journal,
  log: Logger,
): LiveShadow | undefined {
  if (!shadow.enabled) return undefined;
  const candidates = shadow.profiles.map((name) => {
    const { name: known, spec } = loadProfile(name);
    return { name: known, spec };
  });
  const host = new ShadowHost({
    work: {
      engine: loadEngine(shadow.engine),
      candidates,
      intervalMillis: shadow.intervalMillis,
      windowRequests: shadow.windowRequests,
      requestsMin: shadow.requestsMin,
      scrapeMillis: scrape.intervalMillis,
    },
    heapMegabytesMax: shadow.heapMegabytesMax,
    taken: (chars) => feed.taken(chars),
    restarted: () => feed.restart(),
    log: (message) => log.warn(message),
  });
  const feed: TraceFeed = new TraceFeed({
    run,
    bufferBytesMax: shadow.bufferBytesMax,
    candidatesMax: 0,
    send: (text) => host.send(text),
  });
  journal.listen(feed);
  return {
    status: () => {
      const { evaluated, ...rest } = host.status();
      const evaluation = evaluated === undefined ? undefined : evaluationOf(evaluated.answer, evaluated.millis);
      return { ...rest, dropped: feed.dropped, bufferedBytes: feed.bufferedBytes, evaluation };
    },
    close: async () => {
      feed.stop();
      await host.close();
    },
  };
}

const METRIC_NAMES = { ttftMicros: "ttft", tpotMicros: "tpot", e2eMicros: "e2e" } as const;

function evaluationOf({ inForce, requests, modelError, candidates }: WhatIfAnswer, millis: number): ShadowEvaluation {
  return {
    inForce,
    requests,
    millis: Math.round(millis),
    modelError: perMetric(modelError, ({ meanRelative }) => meanRelative),
    candidates: candidates.map(({ name, hitRatio, predicted, difference }) => ({
      name,
      hitRatio,
      predictedSeconds: perMetric(predicted, ({ mean }) => mean / MICROS_PER_SECOND),
      differenceSeconds: perMetric(difference, ({ mean, low, high }) => ({
        mean: mean / MICROS_PER_SECOND,
        low: low / MICROS_PER_SECOND,
        high: high / MICROS_PER_SECOND,
      })),
    })),
  };
}

/** Metrics that have a value, by their short names. */
function perMetric<T, R>(
  values: Readonly<Record<keyof typeof METRIC_NAMES, T | undefined>> | undefined,
  of: (value: T) => R,
): Record<string, R> {
  const named: Record<string, R> = {};
  for (const [metric, name] of Object.entries(METRIC_NAMES)) {
    const value = values?.[metric as keyof typeof METRIC_NAMES];
    if (value !== undefined) named[name] = of(value);
  }
  return named;
}
