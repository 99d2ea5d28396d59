import { tokensOfEach } from "#core/latency/latency-model.ts";
import { assert } from "#core/base/assert.ts";
import type { RouteRequest } from "#core/request/request.ts";
import { type Slo, sloWith } from "#core/request/slo.ts";
import type { Micros } from "#core/base/units.ts";
import type { EnginePrompt } from "#engine/further-answer.ts";
import { conversations, startOf } from "#trace/conversations.ts";
import { Schedule, type ScheduleOptions } from "#trace/schedule.ts";
import type { WorkloadRequest } from "#trace/workload-request.ts";
import { type SloTarget, type SloTargets, targetOf } from "../result/slo.ts";
import type { ArrivalSource, SimulatedRequest } from "../setting/arrival-source.ts";
import { WorkloadChains } from "./workload-chains.ts";

export interface WorkloadArrivalsOptions extends ScheduleOptions {
  readonly seed: number;
  /** Tokens per block of the chains that the router sees. */
  readonly blockTokens: number;
  /** From arrival until the client gives up; Infinity for never. */
  readonly timeoutMicros: Micros;
  /**
   * Whether the router gets to know the blocks of answers, as a gateway does whose clients ask for token ids: where the
   * workload states that it did, or of every answer that the conversation's next prompt shows.
   */
  readonly answers?: "recorded" | "known";
  /** What clients of each class state as their targets, where the workload has none of their own. */
  readonly targets?: SloTargets;
}

/**
 * A workload's requests, read as they come due: first turns at their arrival, the turns after them when the turn before
 * has ended. It reads ahead as far as the first arrival after the one that is due, and so knows a conversation's next
 * turn, which begins with the answer that the engine is about to keep in its cache.
 *
 * An array may be in any order. A stream is in sending order, its conversations' turns together: one that comes when the
 * turn before it was over long ago is a RangeError.
 */
export class WorkloadArrivals implements ArrivalSource {
  readonly #options: WorkloadArrivalsOptions;
  /** What is read at once: conversations that depend on one another, of a stream a request. */
  readonly #groups: Iterator<readonly WorkloadRequest[]> | undefined;
  readonly #stream: Iterator<WorkloadRequest> | undefined;
  readonly #schedule: Schedule;
  readonly #chains = new Map<number, WorkloadChains>();
  #exhausted = false;
  /** Arrival of the last group's first turn that was read: what is not read yet comes no earlier. */
  #readUntil: Micros = -1;
  #clock: Micros = 0;

  constructor(requests: readonly WorkloadRequest[] | Iterable<WorkloadRequest>, options: WorkloadArrivalsOptions) {
    this.#options = options;
    if (isArray(requests)) this.#groups = conversations(requests);
    else this.#stream = requests[Symbol.iterator]();
    this.#schedule = new Schedule(options);
  }

  get stranded(): number {
    return this.#schedule.size;
  }

  nextAt(): Micros {
    while (!this.#exhausted && this.#readUntil <= (this.#schedule.nextDue ?? Infinity)) {
      if (this.#stream === undefined) this.#readGroup();
      else this.#readOne(this.#stream);
    }
    return this.#schedule.nextDue ?? Infinity;
  }

  take(): SimulatedRequest {
    const due = this.#schedule.take(this.nextAt());
    assert(due !== undefined, "an arrival is taken where there is one");
    this.#clock = due.dueMicros;
    const next = this.#schedule.nextTurn(due.request.session);
    return new WorkloadArrival(due.request, next, due.dueMicros, this.#options, this.#chainsOf);
  }

  ended(request: SimulatedRequest, at: Micros): void {
    assert(request instanceof WorkloadArrival, "a request ends at the source that it came from");
    if (request.workload.session === "") return;
    this.#clock = at;
    this.#schedule.finished(request.workload, at);
  }

  #readGroup(): void {
    const step = this.#groups?.next();
    if (step === undefined || step.done === true) {
      this.#exhausted = true;
      return;
    }
    const group = step.value;
    for (let i = 0; i < group.length; i++) this.#add(group[i]!);
    if (group.length === 1) return this.#hasRead(group[0]!);
    this.#checkTime(group[0]!);
    if (group.every(({ thinkMicros }) => thinkMicros !== undefined)) return;
    this.#readUntil = Math.max(this.#readUntil, this.#schedule.arrivalDue({ arrivalMicros: startOf(group) }));
  }

  #readOne(stream: Iterator<WorkloadRequest>): void {
    const step = stream.next();
    if (step.done === true) {
      this.#exhausted = true;
      return;
    }
    this.#add(step.value);
    this.#hasRead(step.value);
  }

  #add(request: WorkloadRequest): void {
    this.#schedule.add({ request, send: true }, this.#clock);
  }

  #checkTime(first: WorkloadRequest): void {
    if ((this.#schedule.nextDue ?? Infinity) < this.#clock) throw new RangeError(lateTurn(first));
  }

  /** One that nothing read at once depends on. */
  #hasRead(request: WorkloadRequest): void {
    this.#checkTime(request);
    // Of a stream, later turns with an arrival of their own are no evidence about other conversations.
    if (request.session !== "" && request.turn > 0) return;
    if (request.thinkMicros !== undefined) return;
    this.#readUntil = Math.max(this.#readUntil, this.#schedule.arrivalDue(request));
  }

  readonly #chainsOf = (blockTokens: number): WorkloadChains => {
    let chains = this.#chains.get(blockTokens);
    if (chains === undefined) {
      chains = new WorkloadChains(blockTokens, this.#options.seed);
      this.#chains.set(blockTokens, chains);
    }
    return chains;
  };
}

function isArray(requests: Iterable<WorkloadRequest>): requests is readonly WorkloadRequest[] {
  return Array.isArray(requests);
}

function lateTurn({ session, turn }: WorkloadRequest): string {
  return (
    `expected a workload in sending order, with a conversation's turns together; turn ${turn} of ` +
    `${JSON.stringify(session)} was read when its time had passed`
  );
}

class WorkloadArrival implements SimulatedRequest {
  readonly workload: WorkloadRequest;
  readonly route: RouteRequest;
  readonly arrivalAt: Micros;
  readonly outputTokens: number;
  readonly deadlineAt: Micros;
  readonly #next: WorkloadRequest | undefined;
  readonly #answers: "recorded" | "known";
  readonly #chainsOf: (blockTokens: number) => WorkloadChains;

  constructor(
    workload: WorkloadRequest,
    next: WorkloadRequest | undefined,
    arrivalAt: Micros,
    options: WorkloadArrivalsOptions,
    chainsOf: (blockTokens: number) => WorkloadChains,
  ) {
    this.workload = workload;
    this.arrivalAt = arrivalAt;
    const { sequences = 1 } = workload;
    this.outputTokens = tokensOfEach(workload.outputTokens, sequences);
    this.deadlineAt = arrivalAt + Math.min(options.timeoutMicros, workload.timeoutMicros ?? Infinity);
    this.#next = next;
    this.#answers = options.answers ?? "recorded";
    this.#chainsOf = chainsOf;
    const slo = statedTargets(workload.slo, options.targets && targetOf(options.targets, workload.sloClass));
    const route: RouteRequest = {
      id: `request_${workload.index}`,
      model: workload.model,
      tenant: workload.tenant,
      session: workload.session,
      sloClass: workload.sloClass,
      priority: 0,
      promptTokens: workload.promptTokens,
      promptTokensExact: workload.tokensByPrompt === undefined,
      outputTokensMax: undefined,
      sequences,
      blocks: chainsOf(options.blockTokens).chainOf(workload),
      profile: "",
    };
    const isPlain = workload.cacheRead !== false && slo === undefined && workload.tokensByPrompt === undefined;
    this.route = isPlain ? route : withParts(route, workload, slo);
  }

  answerHashes(): Int32Array | undefined {
    const { workload } = this;
    // Nobody knows which of several the conversation goes on with.
    if (workload.sequences !== undefined) return undefined;
    if (this.#answers === "recorded" && workload.answerIds === undefined) return undefined;
    const { hashes, length, blockTokens } = this.route.blocks;
    const sequence = this.#chainsOf(blockTokens).withAnswer(hashes, workload, this.#next);
    // The last token of an answer is never computed, so its key and value are in no cache.
    const full = Math.floor((workload.promptTokens + workload.outputTokens - 1) / blockTokens);
    const blocks = Math.min(full, sequence.length >> 1);
    return blocks > length ? sequence.subarray(2 * length, 2 * blocks) : undefined;
  }

  furtherPrompts(blockTokens: number): readonly EnginePrompt[] {
    return this.#chainsOf(blockTokens).furtherPrompts(this.workload);
  }

  engineHashes(blockTokens: number): Int32Array {
    const { blocks } = this.route;
    const prompt =
      blocks.blockTokens === blockTokens ? blocks.hashes : this.#chainsOf(blockTokens).chainOf(this.workload).hashes;
    if (this.workload.sequences !== undefined) return prompt;
    return this.#chainsOf(blockTokens).withAnswer(prompt, this.workload, this.#next);
  }
}

/** With those parts that it has. Most requests have none, and an object put together of others costs them more. */
function withParts(route: RouteRequest, workload: WorkloadRequest, slo: Slo | undefined): RouteRequest {
  const { cacheRead, tokensByPrompt } = workload;
  return {
    ...route,
    ...(cacheRead === false && { cacheRead }),
    ...(slo !== undefined && { slo }),
    ...(tokensByPrompt !== undefined && { tokensByPrompt }),
  };
}

/** Its own targets, else those of its class; one that is left out, or infinite, is none. */
function statedTargets(own: Slo | undefined, ofClass: SloTarget | undefined): Slo | undefined {
  if (own === undefined && ofClass === undefined) return undefined;
  const finite = (micros = Infinity) => (micros < Infinity ? micros : undefined);
  return sloWith(finite(own?.ttftMicros ?? ofClass?.ttftMicros), finite(own?.tpotMicros ?? ofClass?.tpotMicros));
}
