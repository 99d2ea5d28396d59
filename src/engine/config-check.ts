import {
  ENGINE_DEFAULTS,
  type EngineConfig,
  type EngineSemantics,
  type KvTierConfig,
  PREEMPTION_POLICIES,
  type QueueDelay,
  SCHEDULER_POLICIES,
  type StepGap,
} from "./config.ts";
import { type Problem, Reader } from "./reader.ts";
import { readStepTime } from "./step-time/step-time-check.ts";

export type CheckedEngineConfig =
  | { readonly config: EngineConfig; readonly problems?: undefined }
  | { readonly config?: undefined; readonly problems: readonly Problem[] };

/**
 * Turns what a file holds into a configuration. Keys are those of EngineConfig; one left out has its default; unknown
 * keys, wrong types and values out of range are problems, each with the path and the accepted values.
 */
export function checkEngineConfig(value: unknown): CheckedEngineConfig {
  const reader = new Reader(value, "");
  const defaults = ENGINE_DEFAULTS;
  const tier = reader.optional("tier", readTier);
  const config: EngineConfig = {
    blockTokens: reader.integer("blockTokens", 1, 65_536, defaults.blockTokens),
    kvBlocks: reader.integer("kvBlocks", 2, 16_777_216, defaults.kvBlocks),
    sequencesMax: reader.integer("sequencesMax", 1, 1_048_576, defaults.sequencesMax),
    batchTokensMax: reader.integer("batchTokensMax", 1, 16_777_216, defaults.batchTokensMax),
    longPrefillTokens: reader.integer("longPrefillTokens", 0, 16_777_216, defaults.longPrefillTokens),
    modelTokensMax: reader.integer("modelTokensMax", 2, 1_073_741_824, defaults.modelTokensMax),
    prefixCaching: reader.flag("prefixCaching", defaults.prefixCaching),
    watermark: reader.number("watermark", 0, 0.999, defaults.watermark),
    reserveFullPrompt: reader.flag("reserveFullPrompt", defaults.reserveFullPrompt),
    scheduler: reader.choice("scheduler", SCHEDULER_POLICIES, defaults.scheduler),
    preemption: reader.choice("preemption", PREEMPTION_POLICIES, defaults.preemption),
    queueDelay: reader.optional("queueDelay", readQueueDelay) ?? defaults.queueDelay,
    stepTime: reader.optional("stepTime", readStepTime) ?? defaults.stepTime,
    stepGap: reader.optional("stepGap", readStepGap) ?? defaults.stepGap,
    asyncScheduling: reader.flag("asyncScheduling", defaults.asyncScheduling),
    semantics: reader.optional("semantics", readSemantics) ?? defaults.semantics,
    tier,
    coalesce: reader.flag("coalesce", defaults.coalesce),
    check: reader.flag("check", defaults.check),
  };
  reader.finish();
  if (config.asyncScheduling && !asyncPossible(config.semantics)) {
    const message = "goes with semantics.completion step-end and semantics.preempted keeps-tokens only";
    reader.problems.push({ path: "asyncScheduling", message });
  }
  return reader.problems.length === 0 ? { config } : { problems: reader.problems };
}

/** The step after the one that runs is composed on the assumption that the latter's tokens will stay. */
function asyncPossible(semantics: EngineSemantics): boolean {
  return semantics.completion === "step-end" && semantics.preempted === "keeps-tokens";
}

function readQueueDelay(reader: Reader): QueueDelay {
  return {
    baseMicros: reader.micros("baseMicros", 0),
    perPromptTokenMicros: reader.micros("perPromptTokenMicros", 0),
  };
}

function readStepGap(reader: Reader): StepGap {
  return {
    baseMicros: reader.micros("baseMicros", 0),
    afterPrefillMicros: reader.micros("afterPrefillMicros", 0),
    perDecodeMicros: reader.micros("perDecodeMicros", 0),
  };
}

function readSemantics(reader: Reader): EngineSemantics {
  return {
    completion: reader.choice("completion", ["step-end", "last-step-start"], "step-end"),
    preempted: reader.choice("preempted", ["keeps-tokens", "restarts"], "keeps-tokens"),
    fullHit: reader.choice("fullHit", ["last-token", "nothing"], "last-token"),
    hitChunkStart: reader.choice("hitChunkStart", ["true-position", "zero"], "true-position"),
    finalToken: reader.choice("finalToken", ["not-stored", "stored"], "not-stored"),
    partialBlocks: reader.choice("partialBlocks", ["front", "back"], "front"),
    duplicates: reader.choice("duplicates", ["coexist", "last-writer"], "coexist"),
  };
}

function readTier(reader: Reader): KvTierConfig {
  return {
    cpuBlocks: reader.integer("cpuBlocks", 1, 16_777_216, undefined),
    offloadThreshold: reader.number("offloadThreshold", 0, 1, 0.9),
    transferBaseMicros: reader.micros("transferBaseMicros", 0),
    blockBytes: reader.integer("blockBytes", 1, 1_073_741_824, undefined),
    bytesPerSecond: reader.number("bytesPerSecond", 1, 1e15, undefined),
    thrashWindowMicros: reader.integer("thrashWindowMicros", 0, 3_600_000_000, 1_000_000),
  };
}
