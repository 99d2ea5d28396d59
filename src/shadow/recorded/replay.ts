import type { Decision } from "#core/decision.ts";
import { ApproximateIndex } from "#core/prefix/approximate.ts";
import { Router } from "#core/router.ts";
import {
  breakdownDigest,
  type RecordedDecision,
  type TraceHeader,
  type TraceItem,
  type TraceRecord,
} from "#trace/record.ts";

/** A decision that came out otherwise than it was recorded. */
export interface Difference {
  /** Position among the trace's records, from 0. */
  readonly record: number;
  /** What differs, in words. */
  readonly what: string;
  readonly recorded: RecordedDecision | undefined;
  readonly replayed: Decision | undefined;
}

export interface ReplayResult {
  readonly runs: number;
  readonly inputs: number;
  /** Decisions that were compared. */
  readonly decisions: number;
  readonly differences: number;
  readonly first: Difference | undefined;
  /**
   * Decisions that cannot be compared: inputs before them are missing, dropped by the recorder or in segments that are
   * gone, so the recorded router knew what this one cannot.
   */
  readonly unverifiable: number;
}

/**
 * Gives a trace's inputs to a fresh router of the same profile and seed, and compares every decision bit for bit. It
 * takes one item at a time, so that it serves a file as well as a running gateway.
 */
export class Replay {
  readonly #makeRouter: (header: TraceHeader) => Router;
  #router: Router | undefined;
  #whole = true;
  #runs = 0;
  #inputs = 0;
  #decisions = 0;
  #differences = 0;
  #unverifiable = 0;
  #first: Difference | undefined;

  constructor(makeRouter: (header: TraceHeader) => Router = routerOf) {
    this.#makeRouter = makeRouter;
  }

  /** The difference that this item shows, if any. */
  take(item: TraceItem): Difference | undefined {
    switch (item.kind) {
      case "run":
        this.#begin(item.header);
        return undefined;
      case "gap":
        this.#whole = false;
        return undefined;
      case "record":
        return this.#record(item);
    }
  }

  result(): ReplayResult {
    return {
      runs: this.#runs,
      inputs: this.#inputs,
      decisions: this.#decisions,
      differences: this.#differences,
      first: this.#first,
      unverifiable: this.#unverifiable,
    };
  }

  #begin(header: TraceHeader): void {
    this.#runs++;
    this.#whole = header.segment === 0 && header.derived?.replayable !== false;
    this.#router = this.#makeRouter(header);
    for (const endpoint of header.endpoints) this.#router.accept({ kind: "endpoint-joined", at: 0, endpoint });
  }

  #record({ input, decision: recorded }: TraceRecord): Difference | undefined {
    const record = this.#inputs++;
    if (this.#router === undefined || !this.#whole) {
      if (recorded !== undefined) this.#unverifiable++;
      return undefined;
    }
    const replayed = this.#router.accept(input);
    if (recorded === undefined && replayed === undefined) return undefined;
    this.#decisions++;
    const what = differing(recorded, replayed);
    if (what === undefined) return undefined;
    this.#differences++;
    const difference = { record, what, recorded, replayed };
    this.#first ??= difference;
    return difference;
  }
}

/** A router as the recorded one was at its start. */
export function routerOf({ router: { breaker, ...settings } }: TraceHeader): Router {
  const options = { ...settings, index: new ApproximateIndex() };
  return new Router(breaker === undefined ? options : { ...options, breaker });
}

function differing(recorded: RecordedDecision | undefined, replayed: Decision | undefined): string | undefined {
  if (recorded === undefined || replayed === undefined) {
    return `${recorded === undefined ? "no decision" : "a decision"} was recorded, ${replayed === undefined ? "none" : "one"} was made`;
  }
  for (const field of ["kind", "sequence", "attempt", "profile", "reason"] as const) {
    if (recorded[field] !== replayed[field])
      return `${field}: ${recorded[field]} recorded, ${replayed[field]} replayed`;
  }
  if (recorded.kind === "routed" && replayed.kind === "routed") {
    for (const field of ["endpoint", "hitTokens", "usedLedger"] as const) {
      if (recorded[field] !== replayed[field])
        return `${field}: ${recorded[field]} recorded, ${replayed[field]} replayed`;
    }
  }
  const digest = breakdownDigest(replayed.breakdown);
  if (recorded.breakdown.digest === digest) return undefined;
  return `scores: digest ${recorded.breakdown.digest} recorded, ${digest} replayed`;
}
