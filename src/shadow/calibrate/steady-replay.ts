import type { EngineConfig } from "#engine/config.ts";
import { createEngine } from "#engine/create-engine.ts";

/** What a client that measures an engine asks of it. Lengths in tokens. */
export interface SteadyRequest {
  readonly promptTokens: number;
  readonly outputTokens: number;
  /** Requests of one text have one prompt, which is cached after the first of them. */
  readonly text: number;
}

/** Requests at given times, or users each of whom asks again when the answer before is complete. */
export type SteadyLoad =
  | { readonly kind: "at"; readonly arrivals: readonly number[] }
  | { readonly kind: "users"; readonly count: number; readonly requests: number };

/** Means over the requests that count, in microseconds. */
export interface SteadyTimes {
  readonly ttftMicros: number;
  readonly tpotMicros: number;
}

/** The first `uncounted` requests only fill the engine. An engine that cannot take a request gives NaN. */
export function replaySteady(
  config: EngineConfig,
  load: SteadyLoad,
  requestOf: (number: number) => SteadyRequest,
  uncounted: number,
): SteadyTimes {
  const total = load.kind === "at" ? load.arrivals.length : load.requests;
  const submittedAt = new Float64Array(total);
  const firstAt = new Float64Array(total).fill(NaN);
  const lastAt = new Float64Array(total).fill(NaN);
  const gaps = new Float64Array(total);
  let next = 0;
  const engine = createEngine(config, {
    token: (at, { id }, tokens) => {
      const row = Number(id);
      if (tokens === 1) firstAt[row] = at;
      lastAt[row] = at;
    },
    finished: (at) => {
      if (load.kind === "users" && next < total) submit(at);
    },
  });
  const submit = (at: number) => {
    const { promptTokens, outputTokens, text } = requestOf(next);
    submittedAt[next] = at;
    gaps[next] = Math.max(1, outputTokens - 1);
    engine.submit(at, {
      id: String(next++),
      promptTokens,
      outputTokens,
      hashes: hashesOf(text, Math.floor(promptTokens / config.blockTokens)),
      priority: 0,
      deadlineAt: undefined,
      cacheRead: true,
    });
  };
  if (load.kind === "at") for (const at of load.arrivals) submit(at);
  else for (let user = 0; user < Math.min(load.count, total); user++) submit(0);
  for (let at = engine.nextEventAt(); at !== undefined; at = engine.nextEventAt()) engine.advanceTo(at);
  let ttft = 0;
  let tpot = 0;
  for (let row = uncounted; row < total; row++) {
    ttft += firstAt[row]! - submittedAt[row]!;
    tpot += (lastAt[row]! - firstAt[row]!) / gaps[row]!;
  }
  const counted = total - uncounted;
  return { ttftMicros: ttft / counted, tpotMicros: tpot / counted };
}

/** Two words a block: the text, and the block's place in it. */
function hashesOf(text: number, blocks: number): Int32Array {
  const hashes = new Int32Array(2 * blocks);
  for (let block = 0; block < blocks; block++) {
    hashes[2 * block] = text + 1;
    hashes[2 * block + 1] = block + 1;
  }
  return hashes;
}
