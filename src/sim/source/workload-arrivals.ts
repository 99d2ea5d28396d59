import { assert } from "#core/assert.ts";
import type { RouteRequest } from "#core/request.ts";
import type { Micros } from "#core/units.ts";
import { Schedule, type ScheduleOptions } from "#trace/schedule.ts";
import type { WorkloadRequest } from "#trace/workload-request.ts";
import type { ArrivalSource, SimulatedRequest } from "./arrival-source.ts";
import { PromptChains } from "./prompt-chains.ts";

export interface WorkloadArrivalsOptions extends ScheduleOptions {
  readonly seed: number;
  /** Tokens per block of the chains that the router sees. */
  readonly blockTokens: number;
  /** From arrival until the client gives up; Infinity for never. */
  readonly timeoutMicros: Micros;
}

/**
 * A workload's requests, read as they come due: first turns at their arrival, the turns after them when the turn before
 * has ended. It reads ahead as far as the first arrival after the one that is due, and so knows a conversation's next
 * turn, which begins with the answer that the engine is about to keep in its cache.
 */
export class WorkloadArrivals implements ArrivalSource {
  readonly #options: WorkloadArrivalsOptions;
  readonly #requests: Iterator<WorkloadRequest>;
  readonly #schedule: Schedule;
  readonly #chains = new Map<number, PromptChains>();
  #exhausted = false;
  /** Arrival of the last first turn that was read: what is not read yet comes no earlier. */
  #readUntil: Micros = -1;
  #clock: Micros = 0;

  constructor(requests: Iterable<WorkloadRequest>, options: WorkloadArrivalsOptions) {
    this.#options = options;
    this.#requests = requests[Symbol.iterator]();
    this.#schedule = new Schedule(options);
  }

  get stranded(): number {
    return this.#schedule.size;
  }

  nextAt(): Micros {
    while (!this.#exhausted && this.#readUntil <= (this.#schedule.nextDue ?? Infinity)) this.#read();
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

  #read(): void {
    const step = this.#requests.next();
    if (step.done === true) {
      this.#exhausted = true;
      return;
    }
    const request = step.value;
    this.#schedule.add({ request, send: true }, this.#clock);
    if (request.thinkMicros === undefined) {
      const due = this.#schedule.arrivalDue(request);
      if (due > this.#readUntil) this.#readUntil = due;
    }
  }

  readonly #chainsOf = (blockTokens: number): PromptChains => {
    let chains = this.#chains.get(blockTokens);
    if (chains === undefined) {
      chains = new PromptChains(blockTokens, this.#options.seed);
      this.#chains.set(blockTokens, chains);
    }
    return chains;
  };
}

class WorkloadArrival implements SimulatedRequest {
  readonly workload: WorkloadRequest;
  readonly route: RouteRequest;
  readonly arrivalAt: Micros;
  readonly outputTokens: number;
  readonly deadlineAt: Micros;
  readonly #next: WorkloadRequest | undefined;
  readonly #chainsOf: (blockTokens: number) => PromptChains;

  constructor(
    workload: WorkloadRequest,
    next: WorkloadRequest | undefined,
    arrivalAt: Micros,
    options: WorkloadArrivalsOptions,
    chainsOf: (blockTokens: number) => PromptChains,
  ) {
    this.workload = workload;
    this.arrivalAt = arrivalAt;
    this.outputTokens = workload.outputTokens;
    this.deadlineAt = arrivalAt + Math.min(options.timeoutMicros, workload.timeoutMicros ?? Infinity);
    this.#next = next;
    this.#chainsOf = chainsOf;
    this.route = {
      id: `request_${workload.index}`,
      model: workload.model,
      tenant: workload.tenant,
      session: workload.session,
      sloClass: workload.sloClass,
      priority: 0,
      promptTokens: workload.promptTokens,
      promptTokensExact: true,
      outputTokensMax: undefined,
      sequences: 1,
      blocks: chainsOf(options.blockTokens).chainOf(workload),
      profile: "",
    };
  }

  engineLanes(blockTokens: number): Int32Array {
    const { blocks } = this.route;
    const prompt =
      blocks.blockTokens === blockTokens ? blocks.lanes : this.#chainsOf(blockTokens).chainOf(this.workload).lanes;
    if (this.#next === undefined) return prompt;
    return this.#chainsOf(blockTokens).withAnswer(prompt, this.workload, this.#next);
  }
}
