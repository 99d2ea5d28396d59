import type { EngineConfig } from "#engine/config.ts";
import { createEngine } from "#engine/create-engine.ts";
import type { EngineSink } from "#engine/sink.ts";
import { pauseMicros } from "./steady-protocol.ts";

/** What a client that measures an engine asks of it. Lengths in tokens. */
export interface SteadyRequest {
  readonly promptTokens: number;
  readonly outputTokens: number;
  /** Requests of one text have one prompt, which is cached after the first of them; undefined: like no other. */
  readonly text: number | undefined;
}

/** Requests at given times, or users each of whom asks again when the answer before is complete, after a pause. */
export type SteadyLoad =
  | { readonly kind: "at"; readonly arrivals: readonly number[] }
  | {
      readonly kind: "users";
      readonly count: number;
      readonly requests: number;
      readonly pauseMicrosMax?: number | undefined;
    };

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
  let begun = 0;
  /** Users who pause, by when they ask. */
  const pausing: number[] = [];
  const begin = (at: number) => {
    if (load.kind === "users" && begun < total) pausing.push(at + pauseMicros(load, begun++));
  };
  let next = 0;
  const sink: EngineSink = {
    token: (at, { id }, tokens) => {
      const row = Number(id);
      if (tokens === 1) firstAt[row] = at;
      lastAt[row] = at;
    },
    finished: begin,
  };
  const engine = createEngine(config, sink);
  const submit = (at: number) => {
    const { promptTokens, outputTokens, text } = requestOf(next);
    submittedAt[next] = at;
    gaps[next] = Math.max(1, outputTokens - 1);
    engine.submit(at, {
      id: String(next++),
      promptTokens,
      outputTokens,
      hashes: text === undefined ? NO_HASHES : hashesOf(text, Math.floor(promptTokens / config.blockTokens)),
      priority: 0,
      deadlineAt: undefined,
      cacheRead: true,
    });
  };
  if (load.kind === "at") for (const at of load.arrivals) submit(at);
  else for (let user = 0; user < Math.min(load.count, total); user++) begin(0);
  for (;;) {
    const at = engine.nextEventAt() ?? Infinity;
    const asking = pausing.reduce((least, one) => Math.min(least, one), Infinity);
    if (asking <= at && asking < Infinity) {
      pausing.splice(pausing.indexOf(asking), 1);
      submit(asking);
    } else if (at < Infinity) engine.advanceTo(at);
    else break;
  }
  let ttft = 0;
  let tpot = 0;
  for (let row = uncounted; row < total; row++) {
    ttft += firstAt[row]! - submittedAt[row]!;
    tpot += (lastAt[row]! - firstAt[row]!) / gaps[row]!;
  }
  const counted = total - uncounted;
  return { ttftMicros: ttft / counted, tpotMicros: tpot / counted };
}

/** Blocks that nothing can find. */
const NO_HASHES = new Int32Array(0);

/** Two words a block: the text, and the block's place in it. */
function hashesOf(text: number, blocks: number): Int32Array {
  const hashes = new Int32Array(2 * blocks);
  for (let block = 0; block < blocks; block++) {
    hashes[2 * block] = text + 1;
    hashes[2 * block + 1] = block + 1;
  }
  return hashes;
}
