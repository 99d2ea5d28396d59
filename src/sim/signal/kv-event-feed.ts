import type { EndpointId } from "#core/endpoint/endpoint.ts";
import type { Input } from "#core/input/input.ts";
import type { Micros } from "#core/base/units.ts";
import type { EngineConfig } from "#engine/config.ts";
import type { EngineRequest } from "#engine/request.ts";
import type { EngineSink } from "#engine/sink.ts";
import type { EngineClock } from "../fleet/engine-clock.ts";

import type { PrefixSignal } from "../setting/simulation-options.ts";

interface Host {
  clock(): Micros;
  later(at: Micros, take: (at: Micros) => void): void;
  accept(input: Input): void;
  endpointOf(engine: number): EndpointId;
}

/** What one step of an engine did to its cache, in order. */
interface Batch {
  readonly at: Micros;
  readonly parts: Part[];
}

interface Part {
  readonly kind: "stored" | "removed";
  readonly inHost: boolean;
  readonly words: number[];
}

/**
 * The engines' KV events, as late at the router as they are live: what a step stored and removed comes together, a delay
 * after it. Nothing is lost on the way. An engine whose blocks have another size than the prompts' reports nothing that a
 * prompt could match.
 */
class KvEventFeed {
  readonly #delayMicros: Micros;
  readonly #host: Host;
  /** By engine: what is still on its way. */
  readonly #batches: Batch[][] = [];

  constructor(delayMicros: Micros, host: Host) {
    this.#delayMicros = delayMicros;
    this.#host = host;
  }

  /** An endpoint joined, with an empty cache. */
  joined(at: Micros, engine: number): void {
    this.#host.accept({ kind: "kv-events-alive", at, endpoint: this.#host.endpointOf(engine), isComplete: true });
  }

  sinkOf(engine: number, _config: EngineConfig, clock: EngineClock): Partial<EngineSink> {
    this.#batches[engine] = [];
    return {
      blocksStored: (at, request, firstBlock, count) =>
        this.#add(at + clock.shiftMicros, engine, {
          kind: "stored",
          inHost: false,
          words: wordsOf(request, firstBlock, count),
        }),
      blockRemoved: (at, low, high) =>
        this.#add(at + clock.shiftMicros, engine, { kind: "removed", inHost: false, words: [low, high] }),
      tierBlockStored: (at, low, high) =>
        this.#add(at + clock.shiftMicros, engine, { kind: "stored", inHost: true, words: [low, high] }),
      tierBlockRemoved: (at, low, high) =>
        this.#add(at + clock.shiftMicros, engine, { kind: "removed", inHost: true, words: [low, high] }),
    };
  }

  #add(at: Micros, engine: number, part: Part): void {
    const batches = this.#batches[engine]!;
    let batch = batches.at(-1);
    if (batch?.at !== at) {
      batch = { at, parts: [] };
      batches.push(batch);
      this.#host.later(Math.max(this.#host.clock(), at + this.#delayMicros), (now) => this.#deliver(now, engine));
    }
    const last = batch.parts.at(-1);
    // Stores on a device are chains; all else is in any order.
    const joins = (part.kind === "removed" || part.inHost) && last?.kind === part.kind && last.inHost === part.inHost;
    if (joins) last.words.push(...part.words);
    else batch.parts.push(part);
  }

  #deliver(at: Micros, engine: number): void {
    const batch = this.#batches[engine]!.shift();
    const endpoint = this.#host.endpointOf(engine);
    for (const { kind, inHost, words } of batch?.parts ?? []) {
      const medium = inHost && ({ medium: "host" } as const);
      this.#host.accept({ kind: `blocks-${kind}`, at, endpoint, hashes: Int32Array.from(words), ...medium });
    }
  }
}

/** Where the router knows prefixes from events. */
export function kvEventFeed(prefixes: PrefixSignal, host: Host): KvEventFeed | undefined {
  return prefixes.kind === "kv-events" ? new KvEventFeed(prefixes.delayMicros, host) : undefined;
}

function wordsOf({ hashes }: EngineRequest, firstBlock: number, count: number): number[] {
  return [...hashes.subarray(2 * firstBlock, 2 * (firstBlock + count))];
}
