import { DoubleSlab } from "#core/input/breakdown.ts";
import { nameHash, randomFor, type Random } from "#core/base/random.ts";
import { MICROS_PER_SECOND, type Micros } from "#core/base/units.ts";
import { LENGTHS_ONLY, type WorkloadRequest } from "../workload-request.ts";
import { namespacedBlockId } from "./block-id.ts";
import { gapDraw } from "./arrival-gap.ts";
import { draw } from "./distribution.ts";
import type { ImportOptions } from "./import-options.ts";
import type { ImportReport } from "./import-report.ts";
import { portablePower } from "./portable-math.ts";
import { RateShape } from "../transform/rate-shape.ts";
import { loadSyntheticSpec, type SyntheticGroup, type SyntheticSpec } from "./synthetic-spec.ts";

/** Namespace of the prefix that all prompts share; then one a group prefix, then one a conversation. */
const COMMON_NAMESPACE = 0;

/** Requests that a YAML specification describes; deterministic by its seed or that of the options. */
export async function* readSynthetic(
  path: string,
  options: ImportOptions,
  report: ImportReport,
): AsyncGenerator<WorkloadRequest> {
  yield* synthesize(await loadSyntheticSpec(path), options.seed, report);
}

export function* synthesize(spec: SyntheticSpec, optionSeed: number, report: ImportReport): Generator<WorkloadRequest> {
  const seed = spec.seed ?? optionSeed;
  const nextArrival = arrivals(spec, randomFor(seed, nameHash("synthetic-arrivals")));
  const groups = placeGroups(spec, seed);
  const namespaces = groups.reduce((sum, { group }) => sum + group.prefixes, COMMON_NAMESPACE + 1);
  const weightTotal = spec.groups.reduce((sum, { weight }) => sum + weight, 0);
  const conversationSeed = nameHash(`synthetic-conversation/${seed}`);
  for (let i = 0; i < spec.conversations; i++) {
    // A stream a conversation: what one group draws does not shift another's.
    const random = randomFor(conversationSeed, i);
    let ticket = random.next() * weightTotal;
    const placed = groups.find(({ group }) => (ticket -= group.weight) < 0) ?? groups.at(-1);
    if (placed === undefined) return;
    const arrivalAt = nextArrival();
    if (arrivalAt === Infinity) return;
    const conversation = new Conversation(spec, placed, i, namespaces + i, arrivalAt, random);
    for (let turn = 0; turn < conversation.turns; turn++) {
      yield conversation.turn(turn, report.accept());
      report.records++;
    }
  }
}

interface PlacedGroup {
  readonly group: SyntheticGroup;
  readonly namespace: number;
  readonly prefixBlocks: Int32Array;
  /** Cumulative popularity of its prefixes. */
  readonly popularity: Float64Array;
  /** Room for block ids: an array of its own costs a request more than filling it does. */
  readonly ids: DoubleSlab;
}

/** One conversation, whose turns are drawn one after the other. (A generator of its own cost 0.6 KB.) */
class Conversation {
  readonly turns: number;
  readonly #spec: SyntheticSpec;
  readonly #placed: PlacedGroup;
  readonly #namespace: number;
  readonly #prefix: number;
  readonly #sharedBlocks: number;
  readonly #arrivalMicros: Micros;
  readonly #random: Random;
  readonly #session: string;
  #promptTokens: number;

  constructor(
    spec: SyntheticSpec,
    placed: PlacedGroup,
    index: number,
    namespace: number,
    arrivalMicros: Micros,
    random: Random,
  ) {
    this.#spec = spec;
    this.#placed = placed;
    this.#namespace = namespace;
    this.#arrivalMicros = arrivalMicros;
    this.#random = random;
    this.#prefix = pick(placed.popularity, random);
    this.#sharedBlocks =
      Math.floor(spec.commonPrefixTokens / spec.blockTokens) + (placed.prefixBlocks[this.#prefix] ?? 0);
    this.turns = Math.max(1, Math.round(draw(placed.group.turns, random)));
    this.#session = this.turns === 1 ? "" : `${placed.group.name}-${index}`;
    this.#promptTokens = this.#sharedBlocks * spec.blockTokens;
  }

  /** To be asked for in order: each goes on where the one before ended. */
  turn(turn: number, index: number): WorkloadRequest {
    const { group } = this.#placed;
    const { blockTokens } = this.#spec;
    const promptTokens = this.#promptTokens + Math.max(1, Math.round(draw(group.userTokens, this.#random)));
    const outputTokens = Math.max(1, Math.round(draw(group.outputTokens, this.#random)));
    const thinkMicros = Math.round(draw(group.thinkSeconds, this.#random) * MICROS_PER_SECOND);
    this.#promptTokens = promptTokens + outputTokens;
    return {
      session: this.#session,
      turn,
      parent: LENGTHS_ONLY.parent,
      joins: LENGTHS_ONLY.joins,
      thinkMicros: turn === 0 ? undefined : thinkMicros,
      blockIds: this.#blockIds(Math.ceil(promptTokens / blockTokens)),
      blockTokens,
      text: LENGTHS_ONLY.text,
      tokenIds: LENGTHS_ONLY.tokenIds,
      tenant: group.tenant,
      sloClass: group.sloClass,
      model: group.model,
      index,
      arrivalMicros: this.#arrivalMicros,
      promptTokens,
      outputTokens,
    };
  }

  /** First those of all, then those of its prefix, then its own. */
  #blockIds(blocks: number): Float64Array {
    const common = Math.floor(this.#spec.commonPrefixTokens / this.#spec.blockTokens);
    const ids = this.#placed.ids.take(blocks);
    nameBlocks(ids, 0, Math.min(common, ids.length), COMMON_NAMESPACE);
    nameBlocks(ids, common, Math.min(this.#sharedBlocks, ids.length), this.#placed.namespace + this.#prefix);
    nameBlocks(ids, this.#sharedBlocks, ids.length, this.#namespace);
    return ids;
  }
}

function nameBlocks(ids: Float64Array, from: number, to: number, namespace: number): void {
  if (from >= to) return;
  const first = namespacedBlockId(namespace, from);
  for (let block = from; block < to; block++) ids[block] = first + (block - from);
}

function placeGroups(spec: SyntheticSpec, seed: number): PlacedGroup[] {
  let namespace = COMMON_NAMESPACE + 1;
  const ids = new DoubleSlab();
  return spec.groups.map((group) => {
    const random = randomFor(seed, nameHash(`synthetic-prefixes/${group.name}`));
    const placed = {
      group,
      namespace,
      prefixBlocks: Int32Array.from({ length: group.prefixes }, () =>
        Math.floor(draw(group.prefixTokens, random) / spec.blockTokens),
      ),
      popularity: cumulative(group.prefixes, (k) => 1 / portablePower(k + 1, group.zipfExponent)),
      ids,
    };
    namespace += group.prefixes;
    return placed;
  });
}

function arrivals(spec: SyntheticSpec, random: Random): () => Micros {
  const process = spec.arrivals;
  const bursts = process.process === "bursty" ? process : undefined;
  const shape = new RateShape(spec.windows, spec.diurnal, bursts);
  const gap = gapDraw(process.process === "bursty" ? { process: "poisson" } : process, random);
  const mean = process.process === "together" ? 0 : MICROS_PER_SECOND / process.ratePerSecond;
  const shaped = spec.windows.length > 0 || spec.diurnal !== undefined || bursts !== undefined;
  let at = 0;
  let started = false;
  return () => {
    const passed = started ? gap() * mean : 0;
    if (shaped) at = shape.after(at, passed);
    else at += passed;
    started = true;
    return Math.round(at);
  };
}

function cumulative(count: number, weightOf: (k: number) => number): Float64Array {
  let sum = 0;
  return Float64Array.from({ length: count }, (_, k) => (sum += weightOf(k)));
}

/** First place whose cumulative weight exceeds the draw, by bisection. */
function pick(cumulated: Float64Array, random: Random): number {
  const ticket = random.next() * (cumulated.at(-1) ?? 0);
  let low = 0;
  let high = cumulated.length - 1;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((cumulated[middle] ?? 0) > ticket) high = middle;
    else low = middle + 1;
  }
  return low;
}
