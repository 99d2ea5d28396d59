import type { RouteRequest } from "#core/request.ts";
import type { Micros } from "#core/units.ts";
import type { ArrivalSource, SimulatedRequest } from "#sim/source/arrival-source.ts";

/** Requests of another source that select the profile of their arm when they arrive. */
export class ArmArrivals implements ArrivalSource {
  readonly #source: ArrivalSource;
  readonly #profileOf: (request: RouteRequest, at: Micros) => string;

  constructor(source: ArrivalSource, profileOf: (request: RouteRequest, at: Micros) => string) {
    this.#source = source;
    this.#profileOf = profileOf;
  }

  get stranded(): number {
    return this.#source.stranded;
  }

  nextAt(): Micros {
    return this.#source.nextAt();
  }

  take(): SimulatedRequest {
    const at = this.nextAt();
    const request = this.#source.take();
    return new ArmArrival(request, this.#profileOf(request.route, at));
  }

  ended(request: SimulatedRequest, at: Micros): void {
    if (!(request instanceof ArmArrival)) throw new Error("a request ends at the source that it came from");
    this.#source.ended(request.source, at);
  }
}

class ArmArrival implements SimulatedRequest {
  readonly source: SimulatedRequest;
  readonly route: RouteRequest;
  readonly arrivalAt: Micros;
  readonly outputTokens: number;
  readonly deadlineAt: Micros;

  constructor(source: SimulatedRequest, profile: string) {
    this.source = source;
    this.route = { ...source.route, profile };
    this.arrivalAt = source.arrivalAt;
    this.outputTokens = source.outputTokens;
    this.deadlineAt = source.deadlineAt;
  }

  engineHashes(blockTokens: number): Int32Array {
    return this.source.engineHashes(blockTokens);
  }

  answerHashes(): Int32Array | undefined {
    return this.source.answerHashes?.();
  }
}
