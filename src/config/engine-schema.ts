import * as z from "zod";
import {
  PREEMPTION_POLICIES,
  RANK_BALANCES,
  SCHEDULER_POLICIES,
  VLLM_SEMANTICS,
  engineDefaults,
  roomTokens,
} from "#engine/config.ts";
import { USUAL_IMBALANCE } from "#engine/step-time/attention-time.ts";
import { GRAPH_TOKENS_MAX } from "#engine/step-time/graph-tokens.ts";
import { BLOCK_TOKENS_MAX, DATA_PARALLEL_MAX, KV_BLOCKS_MAX } from "./schema-value.ts";

/** An engine file: config/engines/*.yaml. What is left out has vLLM's default. */

const D = engineDefaults();

const micros = () => z.number().min(0).max(1e9);
const share = () => z.number().min(0).max(1);
const count = (max: number) => z.int().min(1).max(max);

const coefficients = z.strictObject({
  kind: z.literal("coefficients"),
  baseMicros: micros(),
  perPrefillTokenMicros: micros(),
  perDecodeMicros: micros(),
  decodesFree: z.number().min(0).max(10_000).default(0),
  perSequenceMicros: micros().default(0),
  perPrefillMicros: micros().default(0),
  perDecodeContextTokenMicros: micros().default(0),
  perPrefillPairMicros: micros().default(0),
});

const model = z.strictObject({
  layers: count(1000),
  hidden: count(1e6),
  heads: count(10_000),
  kvHeads: count(10_000),
  headSize: count(10_000).optional(),
  intermediate: count(1e7),
  bytesPerParameter: z.number().gt(0).max(8),
  weightBytes: z.number().gt(0).max(8).optional(),
  attentionWeightBytes: z.number().gt(0).max(8).optional(),
  kvBytes: z.number().gt(0).max(8).optional(),
  narrowMultiply: z.boolean().optional(),
  mlpMatrices: z.int().min(2).max(3),
  experts: z
    .strictObject({
      count: count(10_000),
      perToken: count(10_000),
      sharedIntermediate: z.int().min(0).max(1e7).default(0),
    })
    .refine(({ count: all, perToken }) => perToken <= all, { path: ["perToken"], message: "at most count" })
    .optional(),
  denseLayers: z.strictObject({ count: count(1000), intermediate: count(1e7) }).optional(),
  latent: z
    .strictObject({
      queryRank: z.int().min(0).max(1e6),
      keyRank: count(1e6),
      plainSize: count(10_000),
      rotarySize: count(10_000),
      valueSize: count(10_000),
    })
    .optional(),
  window: z.strictObject({ layers: count(1000), tokens: count(1e8) }).optional(),
});

const hardware = z.strictObject({
  tflopsPeak: z.number().gt(0).max(1e6),
  bandwidthTbs: z.number().gt(0).max(1e4),
  mfuPrefill: z.number().gt(0).max(1),
  mfuDecode: z.number().gt(0).max(1),
});

/** What one crossover for the whole step knows of a model. */
const plainModel = model.omit({
  attentionWeightBytes: true,
  kvBytes: true,
  narrowMultiply: true,
  denseLayers: true,
  latent: true,
  window: true,
});

const roofline = z.strictObject({
  kind: z.literal("roofline"),
  model: plainModel,
  hardware,
  tensorParallel: count(1024),
});

const board = z.strictObject({
  tflopsPeak: z.number().gt(0).max(1e6),
  tflopsPeakNarrow: z.number().gt(0).max(1e6).optional(),
  bandwidthTbs: z.number().gt(0).max(1e4),
  linkGbs: z.number().gt(0).max(1e5),
});

/** A share of a data sheet's figure; above 0. */
const reached = () => z.number().gt(0).max(1);

const achieved = z.strictObject({
  bandwidth: reached(),
  compute: reached(),
  narrowCompute: reached().optional(),
  linkBandwidth: reached(),
  expertBandwidth: reached(),
  kvBandwidth: reached(),
  stepMicros: micros(),
  sequenceMicros: micros(),
  layerMicros: micros(),
  expertLayerMicros: micros(),
  latentLayerMicros: micros().default(0),
  eagerLayerMicros: micros(),
  eagerExpertLayerMicros: micros(),
  reduceMicros: micros(),
});

const kernelRoofline = z.strictObject({
  kind: z.literal("kernel-roofline"),
  model,
  vocabulary: count(1e7),
  board,
  achieved,
  tensorParallel: count(1024),
  graphTokensMax: z.int().min(0).max(1e6).default(GRAPH_TOKENS_MAX),
});

const trainedPhysics = z.strictObject({
  kind: z.literal("trained-physics"),
  model: model.refine(({ latent }) => latent === undefined, {
    path: ["latent"],
    message: "none: the trained model has keys and values by heads",
  }),
  hardware: hardware.pick({ tflopsPeak: true, bandwidthTbs: true }),
  tensorParallel: count(1024),
  beta: z.array(z.number().min(0).max(1e6)).min(7).max(11),
});

const points = z
  .array(z.tuple([z.number().min(0), z.number().min(0)]))
  .min(1)
  .max(1e6);

const kernelTable = z.strictObject({
  kind: z.literal("kernel-table"),
  layers: count(1000),
  layer: points,
  once: points,
  perSequence: points,
  attention: z
    .array(z.tuple([z.number().min(0), z.number().min(0), z.number().min(0), z.number().min(0), z.number().min(0)]))
    .min(1)
    .max(1e6),
  imbalance: z
    .strictObject({ partMax: share(), decodesOnlyPartMax: share(), sequences: z.number().min(0).max(1e6) })
    .default(USUAL_IMBALANCE),
  experts: z
    .strictObject({
      count: count(10_000),
      perToken: count(10_000),
      boards: count(1024).optional(),
      rows: z
        .array(z.tuple([z.number().min(0), z.number().min(0), z.number().min(0)]))
        .min(1)
        .max(1e6),
    })
    .refine(({ count: all, perToken }) => perToken <= all, { path: ["perToken"], message: "at most count" })
    .optional(),
  exchange: z
    .strictObject({
      gpus: z.int().min(2).max(1024),
      bytesPerToken: count(1e9),
      gigabytesPerSecond: z.number().gt(0).max(1e5),
      hopMicros: micros(),
    })
    .optional(),
  ranks: z
    .strictObject({
      ranks: z.int().min(2).max(1024),
      bytesOut: count(1e9),
      bytesBack: count(1e9),
      gigabytesPerSecond: z.number().gt(0).max(1e5),
      oneWayGigabytesPerSecond: z.number().gt(0).max(1e5).optional(),
      hopMicros: micros(),
    })
    .optional(),
  graphTokensMax: z.int().min(0).max(1e6).default(0),
  scale: z.number().gt(0).max(1000).default(1),
  baseMicros: micros().default(0),
  perTokenMicros: micros().default(0),
});

const measured = z.strictObject({
  kind: z.literal("measured"),
  stepMicros: z.array(z.int().min(1)).min(1).max(10_000_000),
  startAt: z.array(z.int().min(0)).min(1).max(10_000_000).optional(),
});

const semantics = z.strictObject({
  completion: z.enum(["step-end", "last-step-start"]).default(VLLM_SEMANTICS.completion),
  preempted: z.enum(["keeps-tokens", "restarts"]).default(VLLM_SEMANTICS.preempted),
  fullHit: z.enum(["last-token", "nothing"]).default(VLLM_SEMANTICS.fullHit),
  hitChunkStart: z.enum(["true-position", "zero"]).default(VLLM_SEMANTICS.hitChunkStart),
  finalToken: z.enum(["not-stored", "stored"]).default(VLLM_SEMANTICS.finalToken),
  partialBlocks: z.enum(["front", "back"]).default(VLLM_SEMANTICS.partialBlocks),
  lonePrefill: z.enum(["whole", "limited"]).default(VLLM_SEMANTICS.lonePrefill),
  victimTies: z.enum(["first", "last"]).default(VLLM_SEMANTICS.victimTies),
  mustFit: z.enum(["prompt-and-output", "prompt"]).default(VLLM_SEMANTICS.mustFit),
  duplicates: z.enum(["coexist", "last-writer"]).default(VLLM_SEMANTICS.duplicates),
});

const tier = z.strictObject({
  cpuBlocks: count(1e9),
  offloadThreshold: z.number().min(0).max(1),
  transferBaseMicros: micros(),
  blockBytes: count(1e9),
  bytesPerSecond: z.number().gt(0).max(1e15),
  thrashWindowMicros: micros(),
});

const logarithm = () => z.number().min(-3).max(3);

/** FirstTokenResiduals, as many of one as of the other. */
const firstTokens = z
  .strictObject({
    predictedMicros: z.array(z.int().min(1).max(1e12)).min(1).max(4096),
    laterMicros: z.array(z.int().min(-1e12).max(1e12)).min(1).max(4096),
  })
  .refine(({ predictedMicros, laterMicros }) => predictedMicros.length === laterMicros.length, {
    message: "as many laterMicros as predictedMicros",
  })
  .refine(({ predictedMicros }) => predictedMicros.every((value, i) => i === 0 || value >= predictedMicros[i - 1]!), {
    path: ["predictedMicros"],
    message: "in rising order",
  });

const spread = () => z.number().min(0).max(2);

/** SeenStalls. */
const stalls = z
  .strictObject({
    watchedMicros: z.int().min(1).max(1e15),
    count: z.int().min(0).max(1e6),
    micros: z.array(z.int().min(1).max(1e12)).max(1024),
    shared: share(),
  })
  .refine(({ count: seen, micros: lengths }) => seen === 0 || lengths.length > 0, {
    path: ["micros"],
    message: "at least one length where count is above 0",
  });

/** What a calibration leaves to chance (StepResiduals). */
const residuals = z.strictObject({
  windowMicros: z.int().min(1).max(1e12),
  windows: z.array(z.array(logarithm()).min(1).max(1024)).min(1).max(64),
  levelError: share(),
  delayError: share().default(0),
  prefillError: share().default(0),
  firstTokens: firstTokens.optional(),
  batchError: z.strictObject({ decodes: z.number().min(0).max(1e6), perDecodeMicros: micros() }).optional(),
  stalls: stalls.optional(),
  betweenRuns: z
    .strictObject({
      level: spread(),
      session: spread().optional(),
      sessionDelay: spread().optional(),
      delay: spread(),
      prefill: spread(),
      noise: spread(),
      runs: count(1000),
      seen: z
        .array(z.strictObject({ level: logarithm(), error: spread(), delay: logarithm().optional() }))
        .max(1000)
        .optional(),
    })
    .optional(),
  heldOutError: logarithm().optional(),
});

/** EngineSource. */
const source = z.strictObject({
  runs: z
    .array(
      z.strictObject({
        run: z.string().max(200),
        startedAt: z.iso.datetime().optional(),
        machine: z.string().max(200).optional(),
        engineVersion: z.string().max(200).optional(),
      }),
    )
    .max(1000),
});

const engine = z.strictObject({
  blockTokens: count(BLOCK_TOKENS_MAX).default(D.blockTokens),
  kvBlocks: z.int().min(2).max(KV_BLOCKS_MAX).default(D.kvBlocks),
  kvBytesPerToken: count(1e9).default(D.kvBytesPerToken),
  sequencesMax: count(1e6).default(D.sequencesMax),
  batchTokensMax: count(1e7).default(D.batchTokensMax),
  longPrefillTokens: z.int().min(0).max(1e7).default(D.longPrefillTokens),
  chunkedPrefill: z.boolean().default(D.chunkedPrefill),
  modelTokensMax: count(1e8).default(D.modelTokensMax),
  prefixCaching: z.boolean().default(D.prefixCaching),
  watermark: z.number().min(0).lt(1).default(D.watermark),
  reserveFullPrompt: z.boolean().default(D.reserveFullPrompt),
  scheduler: z.enum(SCHEDULER_POLICIES).default(D.scheduler),
  preemption: z.enum(PREEMPTION_POLICIES).default(D.preemption),
  queueDelay: z
    .strictObject({ baseMicros: micros().default(0), perPromptTokenMicros: micros().default(0) })
    .default(D.queueDelay),
  stepTime: z
    .discriminatedUnion("kind", [coefficients, roofline, kernelRoofline, trainedPhysics, kernelTable, measured])
    .optional(),
  stepGap: z
    .strictObject({
      baseMicros: micros().default(0),
      afterPrefillMicros: micros().default(0),
      perDecodeMicros: micros().default(0),
    })
    .default(D.stepGap),
  dataParallel: count(DATA_PARALLEL_MAX).default(D.dataParallel),
  rankBalance: z.enum(RANK_BALANCES).default(D.rankBalance),
  asyncScheduling: z.boolean().default(D.asyncScheduling),
  semantics: semantics.prefault({}),
  tier: tier.optional(),
  residuals: residuals.optional(),
  source: source.optional(),
});

export const ENGINE_FILE_SCHEMA = engine
  .refine((file) => file.modelTokensMax <= roomTokens(file), {
    path: ["modelTokensMax"],
    message: "at most (kvBlocks - 1) * blockTokens, so that the longest request fits the cache",
  })
  .refine((file) => file.chunkedPrefill || file.batchTokensMax >= file.modelTokensMax, {
    path: ["batchTokensMax"],
    message: "at least modelTokensMax where chunkedPrefill is false, as vLLM demands",
  })
  .refine(
    ({ asyncScheduling, semantics: { completion, preempted } }) =>
      !asyncScheduling || (completion === "step-end" && preempted === "keeps-tokens"),
    {
      path: ["asyncScheduling"],
      message: "goes with semantics.completion step-end and semantics.preempted keeps-tokens only",
    },
  );
