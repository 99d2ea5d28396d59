import type { Decision } from "#core/input/decision.ts";
import type { EndpointId } from "#core/endpoint/endpoint.ts";
import type { Input } from "#core/input/input.ts";

type StageFailed = Extract<Input, { readonly kind: "attempt-failed" | "prefill-failed" | "transfer-failed" }>;

function isStageFailed(input: Input): input is StageFailed {
  return input.kind === "attempt-failed" || input.kind === "prefill-failed" || input.kind === "transfer-failed";
}

/** How evenly requests in flight lie on the endpoints, as they are there, whoever of several routers knows it. */
export class LoadWatch {
  readonly #placed = new Map<string, { endpoint: EndpointId | undefined; readonly sequences: number }>();
  readonly #inFlight = new Map<EndpointId, number>();
  #sum = 0;
  #count = 0;

  /** Most requests in flight at one endpoint over the mean, averaged over the decisions on arrivals; 1 is even. */
  get imbalance(): number {
    return this.#count === 0 ? 1 : this.#sum / this.#count;
  }

  /** Requests in flight there, in engine requests. */
  at(endpoint: EndpointId): number {
    return this.#inFlight.get(endpoint) ?? 0;
  }

  /** An input that a router accepted, with its decision. */
  observe(input: Input, decision: Decision | undefined): void {
    if (input.kind === "request-arrived") {
      if (decision !== undefined) this.#measure(decision);
      this.#placed.set(input.request.id, { endpoint: undefined, sequences: input.request.sequences });
    }
    if (decision?.kind === "routed") this.#charge(decision.requestId, decision.endpoint);
    else if (isStageFailed(input)) this.#release(input.requestId);
    else if (input.kind === "request-finished") {
      this.#release(input.requestId);
      this.#placed.delete(input.requestId);
    }
  }

  #measure({ breakdown: { candidates } }: Decision): void {
    let sum = 0;
    let most = 0;
    for (const { endpoint } of candidates) {
      const inFlight = this.at(endpoint);
      sum += inFlight;
      if (inFlight > most) most = inFlight;
    }
    if (sum === 0) return;
    this.#sum += (most * candidates.length) / sum;
    this.#count++;
  }

  #charge(requestId: string, endpoint: EndpointId): void {
    const placed = this.#placed.get(requestId);
    if (placed === undefined) return;
    placed.endpoint = endpoint;
    this.#inFlight.set(endpoint, this.at(endpoint) + placed.sequences);
  }

  #release(requestId: string): void {
    const placed = this.#placed.get(requestId);
    if (placed?.endpoint === undefined) return;
    this.#inFlight.set(placed.endpoint, this.at(placed.endpoint) - placed.sequences);
    placed.endpoint = undefined;
  }
}
