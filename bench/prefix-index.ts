import Table from "cli-table3";
import { ApproximateIndex } from "#core/prefix/approximate.ts";
import { DualIndex } from "#core/prefix/dual-index.ts";
import type { Insertion, PrefixIndex } from "#core/prefix/prefix-index.ts";
import type { BlockChain } from "#core/prompt/block-chain.ts";
import { fastHasher } from "#core/prompt/block-hash.ts";
import { randomFor, type Random } from "#core/random.ts";

/**
 * Time of one match and one insert with every endpoint full, and memory per held block.
 *
 * warm: the chosen endpoint holds the whole chain. half: it holds the first half. cold: it holds the system prompt, and
 * inserting the rest evicts as much. chat: one of several hundred conversations goes on by 24 blocks, on its endpoint or
 * another one, and one time in four branches off an earlier turn, which cuts the tree into many short segments.
 *
 * The precise index is filled by events, which the last table times.
 *
 * Run: `npx node bench/prefix-index.ts`
 */

const CAPACITY_BLOCKS = 31_250;
const SYSTEM_BLOCKS = 64;
/** Requests without a first token, of all endpoints, and the time from one to the next. */
const UNDER_WAY = 64;
const MICROS_APART = 10_000;
const TURN_BLOCKS = 24;
const RECENT = 32;
const CHATS = 300;
const SEED = 1;

const SHAPES = ["warm", "half", "cold", "chat"] as const;
type Shape = (typeof SHAPES)[number];

interface Setting {
  readonly kind: "approximate" | "precise";
  readonly endpoints: number;
  readonly blocks: number;
  readonly samples: number;
}

const SETTINGS: readonly Setting[] = [
  { kind: "approximate", endpoints: 8, blocks: 512, samples: 4_000 },
  { kind: "approximate", endpoints: 8, blocks: 6_250, samples: 1_500 },
  { kind: "approximate", endpoints: 100, blocks: 512, samples: 4_000 },
  { kind: "approximate", endpoints: 100, blocks: 6_250, samples: 1_500 },
  { kind: "approximate", endpoints: 1_000, blocks: 512, samples: 4_000 },
  { kind: "precise", endpoints: 100, blocks: 512, samples: 2_000 },
  { kind: "precise", endpoints: 100, blocks: 6_250, samples: 500 },
];

const plain = { head: [], border: [], compact: true };
const head = ["index", "endpoints", "blocks", "chain", "match p50", "p99", "insert p50", "p99", "both p50", "p99 us"];
const times = new Table({ head, style: plain });
const events = new Table({ head: ["endpoints", "blocks", "stored ns a block", "removed ns a block"], style: plain });
const memory = new Table({ head: ["index", "endpoints", "blocks", "held blocks", "bytes a held block"], style: plain });

/** Prompts as they come: a system prompt that all share, then words that no other has, or a conversation's next turn. */
class Prompts {
  readonly #random: Random;
  readonly #blocks: number;
  readonly #system: Int32Array;
  readonly #recent: BlockChain[] = [];
  readonly #chats: Int32Array[] = [];

  constructor(random: Random, blocks: number) {
    this.#random = random;
    this.#blocks = blocks;
    this.#system = this.#words(SYSTEM_BLOCKS);
  }

  next(shape: Shape): BlockChain {
    if (shape === "chat") return chainOf(this.#nextTurn());
    if (shape === "warm") return this.#recent[this.#random.below(this.#recent.length)]!;
    const chain = chainOf(joined(this.#system, this.#words(this.#blocks - SYSTEM_BLOCKS)));
    this.#recent[this.#recent.length < RECENT ? this.#recent.length : this.#random.below(RECENT)] = chain;
    return chain;
  }

  #nextTurn(): Int32Array {
    const chat = this.#random.below(CHATS);
    let text = this.#chats[chat] ?? this.#system;
    const turns = Math.floor((text.length - SYSTEM_BLOCKS) / TURN_BLOCKS);
    if (text.length + TURN_BLOCKS > this.#blocks) text = this.#system;
    else if (this.#random.below(4) === 0)
      text = text.subarray(0, SYSTEM_BLOCKS + TURN_BLOCKS * this.#random.below(turns + 1));
    return (this.#chats[chat] = joined(text, this.#words(TURN_BLOCKS)));
  }

  #words(count: number): Int32Array {
    return Int32Array.from({ length: count }, () => this.#random.below(0x1_0000_0000));
  }
}

for (const setting of SETTINGS) measure(setting);
console.log(times.toString());
console.log(memory.toString());
console.log(events.toString());

function measure(setting: Setting): void {
  const { kind, endpoints, blocks, samples } = setting;
  const random = randomFor(SEED, endpoints * blocks);
  const prompts = new Prompts(random, blocks);
  const index = kind === "approximate" ? fullApproximate(setting, prompts) : fullPrecise(setting, prompts);
  for (const shape of SHAPES) {
    sample(index, prompts, shape, setting, random, Math.max(CHATS * 8, samples / 2));
    const { match, insert } = sample(index, prompts, shape, setting, random, samples);
    const both = match.map((micros, i) => micros + insert[i]!);
    const cells = [match, insert, both].flatMap((micros) => [quantile(micros, 0.5), quantile(micros, 0.99)]);
    times.push([kind, endpoints, blocks, shape, ...cells.map((micros) => micros.toFixed(1))]);
  }
}

function sample(
  index: PrefixIndex,
  prompts: Prompts,
  shape: Shape,
  { endpoints }: Setting,
  random: Random,
  count: number,
) {
  const hits = new Int32Array(endpoints);
  const under: Insertion[] = [];
  const match = new Float64Array(count);
  const insert = new Float64Array(count);
  for (let i = 0; i < count; i++) {
    const slot = random.below(endpoints);
    const chain = prompts.next(shape);
    if (shape === "warm") index.insert(slot, chain);
    if (shape === "half") index.insert(slot, { ...chain, length: chain.length >>> 1 });
    const started = performance.now();
    index.match(chain, hits, true);
    const matched = performance.now();
    const insertion = index.insert(slot, chain, true);
    const inserted = performance.now();
    // As many requests are under way as an endpoint or two have.
    under.push(insertion);
    if (under.length > UNDER_WAY) index.computed?.(under.shift()!, i * MICROS_APART);
    index.advance?.(i * MICROS_APART);
    match[i] = 1_000 * (matched - started);
    insert[i] = 1_000 * (inserted - matched);
  }
  for (const insertion of under) index.withdraw(insertion);
  return { match, insert };
}

function fullApproximate({ endpoints, blocks }: Setting, prompts: Prompts): ApproximateIndex {
  const index = new ApproximateIndex();
  for (let slot = 0; slot < endpoints; slot++) {
    index.join(`endpoint-${slot}`, CAPACITY_BLOCKS);
    while (index.size(slot) < CAPACITY_BLOCKS) index.insert(slot, prompts.next("cold"));
  }
  addMemoryRow("approximate", index, endpoints, blocks);
  return index;
}

function fullPrecise({ endpoints, blocks }: Setting, prompts: Prompts): DualIndex {
  const index = new DualIndex();
  for (let slot = 0; slot < endpoints; slot++) index.followed(index.join(`endpoint-${slot}`, CAPACITY_BLOCKS), true);
  for (let slot = 0; slot < endpoints; slot++) {
    while (index.size(slot) < CAPACITY_BLOCKS - blocks) index.stored(slot, prompts.next("cold").hashes, 0);
  }
  let storedMillis = 0;
  let removedMillis = 0;
  for (let slot = 0; slot < endpoints; slot++) {
    const { hashes } = prompts.next("cold");
    const own = Array.from({ length: blocks - SYSTEM_BLOCKS }, (_, i) =>
      hashes.slice(hashes.length - 2 * i - 2).subarray(0, 2),
    );
    const started = performance.now();
    index.stored(slot, hashes, 0);
    const stored = performance.now();
    for (const block of own) index.removed(slot, block, 0);
    storedMillis += stored - started;
    removedMillis += performance.now() - stored;
    index.stored(slot, hashes, 0);
  }
  const nanos = (millis: number, count: number) => ((1e6 * millis) / (count * endpoints)).toFixed(0);
  events.push([endpoints, blocks, nanos(storedMillis, blocks), nanos(removedMillis, blocks - SYSTEM_BLOCKS)]);
  addMemoryRow("precise", index, endpoints, blocks);
  return index;
}

function addMemoryRow(kind: string, index: ApproximateIndex | DualIndex, endpoints: number, blocks: number): void {
  let held = 0;
  for (let slot = 0; slot < endpoints; slot++) held += index.size(slot);
  memory.push([kind, endpoints, blocks, held, (index.bytes / held).toFixed(1)]);
}

function chainOf(text: Int32Array): BlockChain {
  const hashes = new Int32Array(2 * text.length);
  fastHasher(1).extend(new Int32Array(8), text, 0, text.length, hashes, 0);
  return { hashes, length: text.length, blockTokens: 16 };
}

function joined(first: Int32Array, second: Int32Array): Int32Array {
  const both = new Int32Array(first.length + second.length);
  both.set(first);
  both.set(second, first.length);
  return both;
}

function quantile(micros: Float64Array, share: number): number {
  return micros.toSorted()[Math.floor(share * micros.length)]!;
}
