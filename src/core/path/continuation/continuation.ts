import type { Routed } from "../../input/decision.ts";
import type { Fault } from "../../endpoint/fault.ts";
import type { PathEvent } from "../path-event.ts";
import type { BrokenAnswer, GiveUpReason, PathRouter } from "../path-router.ts";
import type { PathStage } from "../stage.ts";

/** What the router gets to know of an answer that broke, beside what the path knows itself. */
export type BrokenPart = Omit<BrokenAnswer, "requestId" | "fault" | "continuations">;

/** What a host does with an answer that goes on elsewhere. */
export interface ContinuationHost {
  readonly router: PathRouter;
  /** As the router knows the request. */
  readonly routeId: string;
  /** What there is of the answer; undefined where it cannot go on, which the host counts. */
  broken(): BrokenPart | undefined;
  /** It goes on there: what follows, "later" where that event comes once the endpoint was asked something. */
  goOn(decision: Routed, fault: Fault): PathEvent | "later";
  /** For the counts: it does not go on. */
  denied(why: GiveUpReason): void;
}

/** An answer of which the client has a part and that breaks: where it goes on, and how often it did. */
export class Continuation implements PathStage {
  readonly #host: ContinuationHost;
  /** Times that it went on elsewhere. */
  times = 0;

  constructor(host: ContinuationHost) {
    this.#host = host;
  }

  goesOn(fault: Fault): PathEvent | "later" {
    const host = this.#host;
    const broken = host.broken();
    if (broken === undefined) return { kind: "denied", why: "no-endpoint" };
    const next = host.router.afterBreak({ requestId: host.routeId, fault, ...broken, continuations: this.times });
    if (next.kind === "give-up") {
      host.denied(next.why);
      return { kind: "denied", why: next.why };
    }
    this.times++;
    return host.goOn(next.decision, fault);
  }

  /** What makes progress costs nothing. */
  firstToken(): void {
    if (this.times > 0) this.#host.router.continued();
  }
}
