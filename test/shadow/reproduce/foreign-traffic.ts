import type { Endpoint } from "#core/endpoint/endpoint.ts";
import type { Input } from "#core/input/input.ts";
import type { ProfileSpec } from "#core/plugin/spec.ts";
import { DualIndex } from "#core/prefix/dual-index.ts";
import { type Random, randomFor } from "#core/base/random.ts";
import { Router } from "#core/router.ts";
import { TRACE_VERSION, type RecordedDecision, type TraceHeader, type TraceItem } from "#trace/codec/record.ts";
import { DueQueue } from "#trace/due-queue.ts";
import { load, request } from "../../core/state.ts";

const BLOCK_TOKENS = 16;
const SECOND = 1_000_000;
/** Requests that an endpoint works on; more of them wait. */
const RUNNING_MAX = 4;
const ENDPOINTS = 4;
const CAPACITY_TOKENS = 200_000;
const APART_MICROS = 4_000;
const ANSWER_BLOCKS = 12;
const SYSTEM_BLOCKS = 10;

export interface ForeignTraffic {
  readonly spec: ProfileSpec;
  readonly requests: number;
  readonly seed: number;
  /** Of the router: how often it reads gauges, which the trace has every 50 ms. */
  readonly readsEveryMicros?: number;
  /** Mean time between two requests. */
  readonly gapMicros?: number;
  readonly routerName?: string;
  /** The trace has other names for the endpoints than the router hashes. */
  readonly isRenamed?: boolean;
}

/**
 * A trace as a bystander records it of a router by `spec`: conversations over four endpoints, each turn longer than the one
 * before, answered by a server of four at a time. The router's own ties and draws are by another seed than the trace's.
 */
export function foreignTraffic(traffic: ForeignTraffic): TraceItem[] {
  return new Bystander(traffic).items();
}

class Bystander {
  readonly #traffic: ForeignTraffic;
  readonly #random: Random;
  readonly #router: Router;
  readonly #endpoints: readonly Endpoint[];
  readonly #records: TraceItem[] = [];
  readonly #events = new DueQueue<() => void>();
  readonly #held: string[][] = Array.from({ length: ENDPOINTS }, () => []);
  #asked = 0;
  #askedAt = -Infinity;
  #readAt = -Infinity;

  constructor(traffic: ForeignTraffic) {
    this.#traffic = traffic;
    this.#random = randomFor(traffic.seed, 1);
    this.#endpoints = Array.from({ length: ENDPOINTS }, (_, i) => ({
      id: `e${i}`,
      models: [],
      labels: {},
      kvCapacityTokens: CAPACITY_TOKENS,
      concurrencyMax: undefined,
    }));
    this.#router = new Router({
      seed: traffic.seed + 1000,
      index: new DualIndex(),
      blockTokens: BLOCK_TOKENS,
      staleAfterMicros: 60 * SECOND,
      profiles: { theirs: traffic.spec },
      defaultProfile: "theirs",
    });
    for (const endpoint of this.#endpoints) this.#router.accept({ kind: "endpoint-joined", at: 0, endpoint });
  }

  items(): TraceItem[] {
    this.#scrape(0);
    const conversations = Array.from({ length: 30 }, (_, i) => i);
    for (const i of conversations) this.#later(this.#gap(0) * (i + 1), (at) => this.#turn(at, i, 0));
    for (let due = this.#events.nextDue; due !== undefined; due = this.#events.nextDue) this.#events.pop()!();
    return [{ kind: "run", header: this.#header() }, ...this.#records];
  }

  #later(at: number, event: (at: number) => void): void {
    this.#events.push(at, () => event(at));
  }

  #gap(at: number): number {
    // Bursts, so that fleets are both idle and unbalanced.
    const isBurst = Math.floor(at / (5 * SECOND)) % 3 === 0;
    const mean = (this.#traffic.gapMicros ?? 60_000) * (isBurst ? 0.5 : 1.5);
    return Math.round(-Math.log(1 - this.#random.next()) * mean);
  }

  #turn(at: number, conversation: number, turn: number): void {
    if (this.#asked >= this.#traffic.requests) return;
    // What comes at once has no order for a bystander.
    const soonest = this.#askedAt + APART_MICROS;
    if (at < soonest) return this.#later(soonest, (later) => this.#turn(later, conversation, turn));
    this.#askedAt = at;
    const id = `r${this.#asked++}`;
    // Many conversations begin alike; now and then a prompt is all its own.
    const own = turn === 0 && this.#random.below(5) === 0;
    const blocks = own
      ? chainOf([[9_000 + this.#asked, 6]])
      : chainOf([
          [conversation % 3, SYSTEM_BLOCKS],
          [100 + conversation, 8 + turn * ANSWER_BLOCKS],
        ]);
    const promptTokens = blocks.length * BLOCK_TOKENS + this.#random.below(BLOCK_TOKENS);
    const asked = request({ id, session: `s${conversation}`, promptTokens, blocks, promptTokensExact: true });
    const arrived: Input = { kind: "request-arrived", at, request: asked };
    const decision = this.#router.accept(arrived);
    if (decision?.kind !== "routed") throw new Error("a fleet that is there serves everybody");
    const endpoint = this.#named(decision.endpoint);
    const observed = { endpoint, by: "header", sure: 1 } as const;
    const input = this.#traffic.routerName === undefined ? arrived : { ...arrived, observed };
    const recorded = { ...decision, endpoint } as unknown as RecordedDecision;
    this.#records.push({ kind: "record", input, decision: recorded });
    const server = this.#endpoints.findIndex(({ id }) => id === decision.endpoint);
    this.#held[server]!.push(id);
    const wait = Math.max(0, this.#held[server]!.length - RUNNING_MAX) * 150_000;
    const first = at + 20_000 + wait + (promptTokens - decision.hitTokens) * 100;
    const end = first + 200_000 + this.#random.below(800_000);
    this.#later(first, (at) => this.#record({ kind: "first-token", at, requestId: id }));
    this.#later(end, (at) => {
      this.#held[server]!.splice(this.#held[server]!.indexOf(id), 1);
      const counts = { promptTokens, cachedTokens: decision.hitTokens, outputTokens: 20 };
      this.#record({ kind: "request-finished", at, requestId: id, outcome: "ok", ...counts });
    });
    const isOver = own || turn >= 8;
    const next = isOver ? conversation + 30 * (1 + this.#random.below(20)) : conversation;
    this.#later(end + this.#gap(at) * 20, (at) => this.#turn(at, next, isOver ? 0 : turn + 1));
  }

  #record(input: Input): void {
    this.#records.push({ kind: "record", input, decision: undefined });
    this.#router.accept(input);
  }

  #named(id: string): string {
    return this.#traffic.isRenamed === true ? `http://${id}:8000` : id;
  }

  #scrape(at: number): void {
    const isRead = at - this.#readAt >= (this.#traffic.readsEveryMicros ?? 0);
    if (isRead) this.#readAt = at;
    for (const [i, { id }] of this.#endpoints.entries()) {
      const count = this.#held[i]!.length;
      const running = Math.min(count, RUNNING_MAX);
      const seen = load({ running, waiting: count - running, kvUtilization: Math.min(1, count / 20) });
      const input: Input = { kind: "load-observed", at, endpoint: id, load: seen };
      this.#records.push({ kind: "record", input: { ...input, endpoint: this.#named(id) }, decision: undefined });
      if (isRead) this.#router.accept(input);
    }
    if (this.#asked < this.#traffic.requests) this.#later(at + 50_000, (at) => this.#scrape(at));
  }

  #header(): TraceHeader {
    const { routerName } = this.#traffic;
    return {
      version: TRACE_VERSION,
      run: "bystander",
      segment: 0,
      startWallMicros: 0,
      router: {
        seed: 1,
        profiles: {},
        defaultProfile: "gnomon",
        blockTokens: BLOCK_TOKENS,
        staleAfterMicros: 60 * SECOND,
        breaker: undefined,
      },
      hash: { algorithm: "fast", blockTokens: BLOCK_TOKENS, tokenizer: "test" },
      endpoints: this.#endpoints.map((one) => ({ ...one, id: this.#named(one.id) })),
      ...(routerName !== undefined && { observed: { router: routerName } }),
    };
  }
}

/** Blocks of families, one behind the other; a family's first blocks are always the same. */
function chainOf(parts: readonly (readonly [family: number, length: number])[]) {
  const hashes = parts.flatMap(([family, length], place) => {
    const random = randomFor(family, 77 + place);
    return Array.from({ length: 2 * length }, () => random.below(0x1_0000_0000) | 0);
  });
  return { hashes: Int32Array.from(hashes), length: hashes.length / 2, blockTokens: BLOCK_TOKENS };
}

export async function* itemsOf(items: readonly TraceItem[]): AsyncGenerator<TraceItem> {
  yield* items;
}
