import type { Decision } from "#core/input/decision.ts";
import type { EndpointId } from "#core/endpoint/endpoint.ts";
import type { Input } from "#core/input/input.ts";

/** What the router knows of each engine's load, by number: gauges as last read, and its own requests in flight. */
export class SeenLoad {
  readonly queue: number[];
  readonly batch: number[];
  readonly kvUtilization: number[];
  readonly inFlight: number[];
  readonly #ids: readonly EndpointId[];
  readonly #engines = new Map<string, number>();

  constructor(ids: readonly EndpointId[]) {
    this.#ids = ids;
    this.queue = ids.map(() => 0);
    this.batch = ids.map(() => 0);
    this.kvUtilization = ids.map(() => 0);
    this.inFlight = ids.map(() => 0);
  }

  /** Sees every input and what the router decided on it. */
  observe(input: Input, decision: Decision | undefined): void {
    if (input.kind === "load-observed") {
      const engine = this.#ids.indexOf(input.endpoint);
      this.queue[engine] = input.load.waiting ?? 0;
      this.batch[engine] = input.load.running ?? 0;
      this.kvUtilization[engine] = input.load.kvUtilization ?? 0;
    }
    if (decision?.kind === "routed") {
      const engine = this.#ids.indexOf(decision.endpoint);
      this.#engines.set(decision.requestId, engine);
      this.inFlight[engine]! += 1;
    }
    if (input.kind === "request-finished") {
      const engine = this.#engines.get(input.requestId);
      if (engine !== undefined) this.inFlight[engine]! -= 1;
      this.#engines.delete(input.requestId);
    }
  }
}
