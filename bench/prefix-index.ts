import Table from "cli-table3";
import { ApproximateIndex } from "#core/prefix/approximate.ts";
import type { PrefixIndex } from "#core/prefix/prefix-index.ts";
import type { BlockChain } from "#core/prompt/block-chain.ts";
import { fastHasher } from "#core/prompt/block-hash.ts";
import { randomFor, type Random } from "#core/random.ts";

/**
 * Time of one match and one insert, at full capacity with eviction, and the memory per held block.
 * Run: `npx node bench/prefix-index.ts`
 */

const CAPACITY_BLOCKS = 31_250;
const BLOCK_WORDS = 1;
const SYSTEM_BLOCKS = 64;
const SEED = 1;

type Shape = "warm" | "half" | "cold";

interface Setting {
  readonly endpoints: number;
  readonly blocks: number;
  readonly samples: number;
}

const SETTINGS: readonly Setting[] = [
  { endpoints: 8, blocks: 512, samples: 4_000 },
  { endpoints: 8, blocks: 6_250, samples: 1_500 },
  { endpoints: 100, blocks: 512, samples: 4_000 },
  { endpoints: 100, blocks: 6_250, samples: 1_500 },
];

const table = new Table({
  head: ["endpoints", "blocks", "chain", "match p50", "p99", "insert p50", "p99", "both p50", "p99 us"],
  colAligns: ["right", "right", "left", "right", "right", "right", "right", "right", "right"],
});
const memory = new Table({
  head: ["endpoints", "blocks a chain", "held blocks", "segments", "holdings", "bytes per held block"],
});

/** Fills every endpoint to its capacity with prompts that share a system prompt, then times each shape of chain. */
function measure({ endpoints, blocks, samples }: Setting): void {
  const random = randomFor(SEED, endpoints * blocks);
  const index = new ApproximateIndex();
  for (let i = 0; i < endpoints; i++) index.join(`endpoint-${i}`, CAPACITY_BLOCKS);
  const texts = new Texts(random, blocks);
  const perEndpoint = Math.ceil((1.2 * CAPACITY_BLOCKS) / (blocks - SYSTEM_BLOCKS));
  for (let i = 0; i < perEndpoint * endpoints; i++) index.insert(i % endpoints, texts.cold());
  addMemoryRow(index, endpoints, blocks);
  for (const shape of ["warm", "half", "cold"] as const) {
    time(index, texts, shape, endpoints, random, Math.ceil(samples / 2));
    const { match, insert, both } = time(index, texts, shape, endpoints, random, samples);
    const cells = [match, insert, both].flatMap((times) => [quantile(times, 0.5), quantile(times, 0.99)]);
    table.push([endpoints, blocks, shape, ...cells.map((micros) => micros.toFixed(1))]);
  }
}

function time(index: PrefixIndex, texts: Texts, shape: Shape, endpoints: number, random: Random, samples: number) {
  const hits = new Int32Array(endpoints);
  const match = new Float64Array(samples);
  const insert = new Float64Array(samples);
  for (let i = 0; i < samples; i++) {
    const slot = random.below(endpoints);
    const chain = texts.next(shape);
    if (shape === "warm") index.insert(slot, chain);
    if (shape === "half") index.insert(slot, { ...chain, length: chain.length >>> 1 });
    const started = performance.now();
    index.match(chain, hits);
    const matched = performance.now();
    index.insert(slot, chain);
    const inserted = performance.now();
    match[i] = 1_000 * (matched - started);
    insert[i] = 1_000 * (inserted - matched);
  }
  return { match, insert, both: match.map((micros, i) => micros + insert[i]!) };
}

class Texts {
  readonly #random: Random;
  readonly #system: Int32Array;
  readonly #blocks: number;
  readonly #recent: BlockChain[] = [];

  constructor(random: Random, blocks: number) {
    this.#random = random;
    this.#blocks = blocks;
    this.#system = this.#words(SYSTEM_BLOCKS);
  }

  next(shape: Shape): BlockChain {
    return shape === "warm" ? this.#recent[this.#random.below(this.#recent.length)]! : this.cold();
  }

  /** The system prompt, then words that no other text has. */
  cold(): BlockChain {
    const text = new Int32Array(this.#blocks * BLOCK_WORDS);
    text.set(this.#system);
    text.set(this.#words(text.length - this.#system.length), this.#system.length);
    const lanes = new Int32Array(2 * this.#blocks);
    fastHasher(BLOCK_WORDS).extend(new Int32Array(8), text, 0, this.#blocks, lanes, 0);
    const chain = { lanes, length: this.#blocks, blockTokens: 16 };
    if (this.#recent.length < 32) this.#recent.push(chain);
    else this.#recent[this.#random.below(32)] = chain;
    return chain;
  }

  #words(count: number): Int32Array {
    return Int32Array.from({ length: count }, () => this.#random.below(0x1_0000_0000));
  }
}

function addMemoryRow(index: ApproximateIndex, endpoints: number, blocks: number): void {
  let held = 0;
  for (let slot = 0; slot < endpoints; slot++) held += index.size(slot);
  memory.push([endpoints, blocks, held, index.segments, index.holdings, (index.bytes / held).toFixed(1)]);
}

function quantile(times: Float64Array, share: number): number {
  return times.toSorted()[Math.floor(share * times.length)]!;
}

for (const setting of SETTINGS) measure(setting);
console.log(table.toString());
console.log(memory.toString());
