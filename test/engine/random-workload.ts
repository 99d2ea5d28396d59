import type { Hold } from "#engine/block-fetch.ts";
import { type EngineConfig, engineDefaults, PREEMPTION_POLICIES, SCHEDULER_POLICIES } from "#engine/config.ts";
import { Engine } from "#engine/engine.ts";
import type { EngineRequest } from "#engine/request.ts";
import type { StepTimeSpec } from "#engine/step-time/create-step-time.ts";
import { type Random, randomFor } from "#core/base/random.ts";

/** Something a host does, or looks at. */
export type Act =
  | { readonly kind: "submit"; readonly at: number; readonly request: EngineRequest }
  | { readonly kind: "abort"; readonly at: number; readonly id: string }
  | { readonly kind: "look"; readonly at: number };

export interface Workload {
  readonly config: EngineConfig;
  readonly acts: readonly Act[];
  /** How long what a request holds beyond its end is held. */
  readonly heldFor?: (id: string) => number;
}

const pick = <T>(random: Random, values: readonly T[]): T => values[random.below(values.length)] as T;

const MODEL_TOKENS_MAX = 64;

function coefficients(random: Random): StepTimeSpec {
  return {
    kind: "coefficients",
    baseMicros: 10,
    perPrefillTokenMicros: 0.7,
    perDecodeMicros: 1.3,
    perDecodeContextTokenMicros: pick(random, [0, 0.11]),
    perPrefillPairMicros: pick(random, [0, 0.03]),
  };
}

/** A draw of its own: the others stay what they were. */
function stepTimeOf(seed: number, drawn: StepTimeSpec): StepTimeSpec {
  return pick(randomFor(seed, 2), [KERNELS, drawn, drawn, drawn]);
}

/** Steps whose time depends on the longest decode, on padding and on experts. */
const KERNELS: StepTimeSpec = {
  kind: "kernel-table",
  layers: 3,
  layer: [
    [1, 3],
    [64, 20],
  ],
  once: [[1, 2]],
  perSequence: [
    [1, 1],
    [8, 3],
  ],
  attention: [0, 4, 64].flatMap((chunk) =>
    (chunk === 0 ? [0] : [0, 64]).flatMap((before) =>
      (chunk === 0 ? [1, 8] : [0, 1, 8]).flatMap((decodes) =>
        (decodes === 0 ? [0] : [1, 64]).map(
          (context) =>
            [chunk, before, decodes, context, 1 + chunk * (before + chunk) * 0.01 + decodes * context * 0.07] as const,
        ),
      ),
    ),
  ),
  experts: {
    count: 8,
    perToken: 2,
    rows: [
      [1, 2, 2],
      [1, 8, 6],
      [64, 2, 5],
      [64, 8, 9],
    ],
  },
  exchange: { gpus: 2, bytesPerToken: 64, gigabytesPerSecond: 1, hopMicros: 0.3 },
  graphTokensMax: 8,
};

/**
 * A small engine under a small workload that reaches everything: few blocks (preemption), small budgets (chunking), few
 * distinct prompts (sharing, also between one request's output and another's prompt), aborts and deadlines.
 */
export function randomWorkload(seed: number): Workload {
  const random = randomFor(seed, 1);
  const blockTokens = pick(random, [1, 2, 4, 4, 8]);
  const chunkedPrefill = random.below(5) > 0;
  const config = engineDefaults({
    blockTokens,
    kvBlocks: 6 + random.below(40),
    sequencesMax: pick(random, [1, 2, 4, 8]),
    batchTokensMax: chunkedPrefill ? pick(random, [3, 8, 16, 64]) : MODEL_TOKENS_MAX,
    longPrefillTokens: pick(random, [0, 0, 3, 5]),
    chunkedPrefill,
    modelTokensMax: pick(random, [24, MODEL_TOKENS_MAX]),
    prefixCaching: random.below(8) > 0,
    watermark: pick(random, [0, 0, 0.1]),
    reserveFullPrompt: random.below(2) > 0,
    scheduler: pick(random, SCHEDULER_POLICIES),
    preemption: pick(random, PREEMPTION_POLICIES),
    queueDelay: pick(random, [
      { baseMicros: 0, perPromptTokenMicros: 0 },
      { baseMicros: 3, perPromptTokenMicros: 1.5 },
    ]),
    stepTime: stepTimeOf(seed, coefficients(random)),
    stepGap: pick(random, [
      { baseMicros: 0, afterPrefillMicros: 0, perDecodeMicros: 0 },
      { baseMicros: 2, afterPrefillMicros: 3, perDecodeMicros: 0.4 },
    ]),
    asyncScheduling: random.below(3) === 0,
    tier: pick(random, [
      undefined,
      undefined,
      {
        cpuBlocks: 1 + random.below(30),
        offloadThreshold: pick(random, [0, 0.5]),
        transferBaseMicros: 4,
        blockBytes: 1000,
        bytesPerSecond: 4e8,
        thrashWindowMicros: 50,
      },
    ]),
    check: true,
  });
  return { config, acts: randomActs(random, config) };
}

function randomActs(random: Random, config: EngineConfig): Act[] {
  // With one family and no end to what is shared, what one request generates is what another one's prompt begins with.
  const families = pick(random, [1, 3]);
  const sharedBlocksMax = pick(random, [8, 1000]);
  const acts: Act[] = [];
  const span = pick(random, [50, 400, 1500]);
  const requests = 1 + random.below(12);
  for (let i = 0; i < requests; i++) {
    const at = random.below(span);
    acts.push({
      kind: "submit",
      at,
      request: randomRequest(random, config, i, at, families, random.below(sharedBlocksMax)),
    });
    if (random.below(6) === 0) acts.push({ kind: "abort", at: at + random.below(300), id: String(i) });
  }
  for (let i = random.below(10); i > 0; i--) acts.push({ kind: "look", at: random.below(span + 600) });
  return acts.sort((a, b) => a.at - b.at);
}

/** Block i of family f has the same words in every request of the family. */
function randomRequest(
  random: Random,
  config: EngineConfig,
  number: number,
  at: number,
  families: number,
  sharedBlocks: number,
): EngineRequest {
  const promptTokens = 1 + random.below(config.modelTokensMax);
  const outputTokens = 1 + random.below(pick(random, [3, 20]));
  const family = random.below(families);
  const known = Math.floor(((promptTokens + outputTokens) / config.blockTokens) * pick(random, [0.5, 1]));
  const hashes = new Int32Array(2 * known);
  for (let i = 0; i < known; i++) {
    hashes[2 * i] = i < sharedBlocks ? family : 100 + number;
    hashes[2 * i + 1] = i;
  }
  return {
    id: String(number),
    promptTokens,
    outputTokens,
    hashes,
    priority: random.below(3),
    deadlineAt: random.below(8) === 0 ? at + 1 + random.below(400) : undefined,
    cacheRead: random.below(10) > 0,
  };
}

/**
 * Runs the workload and writes down everything that the engine said and showed. Of a request's tokens only the first
 * and the last are kept, which is what a coalescing engine tells.
 */
export function chronicle(workload: Workload, overrides: Partial<EngineConfig>): string[] {
  const lines: string[] = [];
  const lastToken = new Map<string, string>();
  const config = { ...workload.config, ...overrides };
  const releases: { readonly at: number; readonly hold: Hold }[] = [];
  const engine = new Engine(config, {
    held: (at, request, hold) => {
      lines.push(`${at} held ${request.id} ${hold.tokens}`);
      releases.push({ at: at + (workload.heldFor?.(request.id) ?? 0), hold });
      releases.sort((a, b) => a.at - b.at);
    },
    admitted: (at, request, cached) => lines.push(`${at} admitted ${request.id} ${cached}`),
    token: (at, request, tokens) => {
      if (tokens === 1) lines.push(`${at} first ${request.id}`);
      lastToken.set(request.id, `${at} ${tokens}`);
    },
    preempted: (at, request) => lines.push(`${at} preempted ${request.id}`),
    released: (at, request) => lines.push(`${at} released ${request.id}`),
    finished: (at, request, reason, cached) => {
      const last = reason === "stop" || reason === "length" ? lastToken.get(request.id) : "";
      lines.push(`${at} finished ${request.id} ${reason} ${cached} ${last ?? "none"}`);
    },
    step: (startAt, endAt, shape) => lines.push(`${startAt}-${endAt} ${JSON.stringify(shape)}`),
    blocksStored: (at, request, first, count) => lines.push(`${at} stored ${request.id} ${first}+${count}`),
    blockRemoved: (at, low, high) => lines.push(`${at} removed ${low}:${high}`),
  });
  /** By events, since what is held from one on may be given back before the next. */
  const advance = (at: number) => {
    for (;;) {
      const released = releases[0];
      const next = Math.min(engine.nextEventAt() ?? Infinity, released?.at ?? Infinity);
      if (next > at) break;
      if (released?.at !== next) engine.advanceTo(next);
      else {
        releases.shift();
        lines.push(`${next} gives back ${released.hold.release(next)} ${released.hold.release(next)}`);
      }
    }
    engine.advanceTo(at);
  };
  const show = (at: number) => {
    advance(at);
    lines.push(`${at} ${JSON.stringify(engine.gauges())}`);
    for (const act of workload.acts) {
      if (act.kind === "submit")
        lines.push(
          `${act.request.id}:${engine.outputTokens(act.request.id)} ${engine.cachedPrefixBlocks(act.request.hashes)}`,
        );
    }
  };
  for (const act of workload.acts) {
    if (act.kind === "submit") {
      advance(act.at - 1);
      lines.push(`${act.at} ${engine.submit(act.at, act.request)} ${act.request.id}`);
    } else if (act.kind === "abort") {
      advance(act.at - 1);
      lines.push(`${act.at} abort ${act.id} ${engine.abort(act.at, act.id)}`);
    } else show(act.at);
  }
  let guard = 0;
  for (;;) {
    const at = Math.min(engine.nextEventAt() ?? Infinity, releases[0]?.at ?? Infinity);
    if (at === Infinity) break;
    if (guard++ > 20_000) throw new Error("the engine does not come to rest");
    advance(at);
  }
  lines.push(JSON.stringify(engine.gauges()));
  return lines;
}
