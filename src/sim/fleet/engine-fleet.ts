import { assert } from "#core/base/assert.ts";
import type { Endpoint, EndpointId } from "#core/endpoint/endpoint.ts";
import type { Micros } from "#core/base/units.ts";
import type { Hold } from "#engine/block-fetch.ts";
import type { EngineConfig } from "#engine/config.ts";
import type { EngineRequest, SubmitOutcome } from "#engine/request.ts";
import { createEngine } from "#engine/create-engine.ts";
import type { ServingEngine } from "#engine/serving-engine.ts";
import type { EngineGauges, EngineSink } from "#engine/sink.ts";
import { EngineClock } from "./engine-clock.ts";
import type { EngineCondition } from "./engine-event.ts";
import { type EnginePrompt, type FurtherAnswer, furtherAnswers } from "#engine/further-answer.ts";

/** A request that an engine has, or is given, by that engine's number. */
interface Sent {
  readonly engine: number;
  readonly id: string;
}

/** One that it is given with all its answers. */
interface SentAnew extends Sent {
  /** For the first answer. */
  readonly asSent: EngineRequest;
  readonly sequences: number;
  readonly source: { furtherPrompts?(blockTokens: number): readonly EnginePrompt[] };
  /** The others that the engine at hand took. */
  further: readonly FurtherAnswer[];
}

const NONE: readonly never[] = [];

/** One endpoint and the engine behind it. */
export interface EngineSpec {
  readonly endpoint: Endpoint;
  readonly config: EngineConfig;
}

/** The engines by number, in the order in which they came, and when something happens next in any of them. */
export class EngineFleet {
  readonly specs: EngineSpec[] = [];
  readonly conditions: EngineCondition[] = [];
  readonly #engines: ServingEngine[] = [];
  readonly #sinks: EngineSink[] = [];
  readonly #clocks: EngineClock[] = [];
  /** Of engines that were there before, by number; absent where there is none. */
  readonly #ended: EngineGauges[][] = [];
  readonly #numbers = new Map<EndpointId, number>();
  /** Per engine: when something may happen next; Infinity while it has nothing to do. */
  #due = new Float64Array(16).fill(Infinity);
  #first = 0;

  get size(): number {
    return this.#engines.length;
  }

  /** Time of the first event in any engine; Infinity when all are idle. */
  get nextAt(): Micros {
    return this.#engines.length === 0 ? Infinity : this.#due[this.#first]!;
  }

  /** `sinkOf` is given the clock by whose times the engine reports. */
  add(spec: EngineSpec, sinkOf: (clock: EngineClock) => EngineSink): number {
    const clock = new EngineClock();
    const sink = sinkOf(clock);
    const number = this.#engines.push(createEngine(spec.config, sink)) - 1;
    this.#sinks.push(sink);
    this.#clocks.push(clock);
    this.conditions.push("serving");
    this.specs.push(spec);
    this.#numbers.set(spec.endpoint.id, number);
    if (number === this.#due.length) {
      const wide = new Float64Array(2 * number).fill(Infinity);
      wide.set(this.#due);
      this.#due = wide;
    }
    this.#due[number] = Infinity;
    return number;
  }

  has(endpoint: EndpointId): boolean {
    return this.#numbers.has(endpoint);
  }

  /** The latest engine of that endpoint. */
  numberOf(endpoint: EndpointId): number {
    const number = this.#numbers.get(endpoint);
    assert(number !== undefined, "an endpoint that was chosen has an engine");
    return number;
  }

  blockTokens(number: number): number {
    return this.specs[number]!.config.blockTokens;
  }

  /** Lets the engine whose turn it is come to its next event; the lower number first among equals. */
  advanceFirst(): void {
    const number = this.#first;
    this.#engines[number]!.advanceTo(this.#clocks[number]!.local(this.#due[number]!));
    this.#schedule(number);
  }

  /** Every engine reports what the step that it runs has settled. */
  reportSettled(): void {
    for (const engine of this.#engines) engine.reportSettled();
  }

  /** Everything that ended before `at` took effect there, and nothing at `at` itself. */
  submit(at: Micros, sent: SentAnew): SubmitOutcome {
    const engine = this.#engines[sent.engine]!;
    const local = this.#clocks[sent.engine]!.local(at);
    engine.advanceTo(local - 1);
    const outcome = engine.submit(local, sent.asSent);
    if (outcome === "queued")
      sent.further = this.#further(sent).filter((one) => engine.submit(local, one) === "queued");
    this.#schedule(sent.engine);
    return outcome;
  }

  #further({ engine, asSent, sequences, source }: SentAnew): readonly FurtherAnswer[] {
    if (sequences === 1) return NONE;
    const blockTokens = this.blockTokens(engine);
    return furtherAnswers(asSent, sequences, blockTokens, source.furtherPrompts?.(blockTokens) ?? NONE);
  }

  /** False when none of its answers was there. */
  abort(at: Micros, { engine, id, further }: Sent & Pick<SentAnew, "further">): boolean {
    const local = this.#clocks[engine]!.local(at);
    let aborted = this.#engines[engine]!.abort(local, id);
    for (const one of further) if (this.#engines[engine]!.abort(local, one.id)) aborted = true;
    this.#schedule(engine);
    return aborted;
  }

  /** Blocks that an engine held for another one are not held any more; false where they were not. */
  giveBack(at: Micros, number: number, hold: Hold): boolean {
    const held = hold.release(this.#clocks[number]!.local(at));
    this.#schedule(number);
    return held;
  }

  /** Counts the processes that were there one after another. */
  lifeOf(number: number): number {
    return this.#ended[number]?.length ?? 0;
  }

  /** As somebody who looks at `at` sees them: what happens at that very time has not happened yet. */
  gauges(at: Micros, number: number): EngineGauges {
    return this.#seen(at, number).gauges();
  }

  /** Tokens that a request has, seen at `at`; undefined where it is over. */
  outputTokens(at: Micros, { engine, id }: Sent): number | undefined {
    return this.#seen(at, engine).outputTokens(id);
  }

  /** Leading blocks of a chain that the engine's cache holds, seen at `at`. */
  cachedPrefixBlocks(at: Micros, number: number, hashes: Int32Array): number {
    return this.#seen(at, number).cachedPrefixBlocks(hashes);
  }

  /** The gauges of all engines that were there one after another, the one at `at` last. */
  gaugesOfAll(at: Micros, number: number): readonly EngineGauges[] {
    return [...(this.#ended[number] ?? []), this.gauges(at, number)];
  }

  /** Its cache is empty from then on; not while it has requests. */
  forget(at: Micros, number: number): boolean {
    return this.#seen(at, number).resetPrefixCache();
  }

  /** The engine stands still from `at` on, or goes on. */
  stop(at: Micros, number: number): void {
    this.#seen(at, number);
    this.#clocks[number]!.stop(at);
    this.#schedule(number);
  }

  start(at: Micros, number: number): void {
    this.#clocks[number]!.start(at);
    this.#schedule(number);
  }

  /** A new process in place of one that holds no request any more. */
  replace(at: Micros, number: number): void {
    (this.#ended[number] ??= []).push(this.gauges(at, number));
    this.#clocks[number]!.start(at);
    const engine = createEngine(this.specs[number]!.config, this.#sinks[number]!);
    engine.advanceTo(this.#clocks[number]!.local(at) - 1);
    this.#engines[number] = engine;
    this.#schedule(number);
  }

  /** The shift of an engine's time, which deadlines of requests there do not know. */
  shiftMicros(number: number): Micros {
    return this.#clocks[number]!.shiftMicros;
  }

  #seen(at: Micros, number: number): ServingEngine {
    const engine = this.#engines[number]!;
    const clock = this.#clocks[number]!;
    if (!clock.stands) engine.advanceTo(at - 1 - clock.shiftMicros);
    return engine;
  }

  #schedule(number: number): void {
    const clock = this.#clocks[number]!;
    const due = clock.stands ? Infinity : (this.#engines[number]!.nextEventAt() ?? Infinity) + clock.shiftMicros;
    const before = this.#due[number]!;
    this.#due[number] = due;
    const first = this.#first;
    if (number !== first) {
      if (due < this.#due[first]! || (due === this.#due[first]! && number < first)) this.#first = number;
    } else if (due > before) this.#findFirst();
  }

  #findFirst(): void {
    let first = 0;
    for (let i = 1; i < this.#engines.length; i++) if (this.#due[i]! < this.#due[first]!) first = i;
    this.#first = first;
  }
}
