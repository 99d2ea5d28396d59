import type { Judged, KeptReason } from "../../request/cascade-input.ts";
import type { Routed } from "../../input/decision.ts";
import type { RouteRequest } from "../../request/request.ts";
import type { Micros } from "../../base/units.ts";
import type { PathRouter } from "../path-router.ts";
import type { PathStage } from "../stage.ts";
import type { CascadeJudge, CascadeSpec, CascadeStep } from "./cascade-judge.ts";

/** What a host brings. */
export interface CascadeHost {
  readonly router: Pick<PathRouter, "accept" | "again">;
  now(): Micros;
}

/** An answer's worth, of the request that the path is about. */
export type AnswerWorth = Omit<Judged, "requestId">;

/** What becomes of an answer of which its client has nothing: it is kept, or another model's endpoint was chosen. */
export type AfterAnswer =
  | { readonly kind: "keep"; readonly why: KeptReason }
  | { readonly kind: "escalate"; readonly decision: Routed };

/**
 * One request on its way through a cascade: at which model it is, whether the answer at hand is still to be judged, and
 * what becomes of it.
 */
export class Cascade implements PathStage {
  readonly binds = true;
  readonly #spec: CascadeSpec;
  readonly #desk: CascadeJudge;
  readonly #host: CascadeHost;
  /** The model that the request is at. */
  number = 0;
  /** Nothing of the answer under way may reach the client. */
  judging = true;

  constructor(spec: CascadeSpec, desk: CascadeJudge, host: CascadeHost) {
    this.#spec = spec;
    this.#desk = desk;
    this.#host = host;
    this.attempted();
  }

  get step(): CascadeStep {
    return this.#spec.steps[this.number]!;
  }
  /** The model that is asked where this answer is given up. */
  get next(): CascadeStep | undefined {
    return this.#spec.steps[this.number + 1];
  }

  /** An attempt begins: its answer is judged, unless it is the last model's. */
  attempted(): void {
    this.judging = this.step.logprobMin !== undefined;
  }

  /** Why such an answer is kept, as far as that needs nobody to be asked. */
  keeps({ meanLogprob, tokens }: AnswerWorth): KeptReason | undefined {
    return this.#desk.keeps(this.step, meanLogprob, tokens);
  }

  /** The answer is kept, and the router gets to know. */
  keep(requestId: string, worth: AnswerWorth, why: KeptReason): AfterAnswer {
    this.judging = false;
    this.#host.router.accept({ kind: "answer-judged", at: this.#host.now(), requestId, ...worth, kept: why });
    return { kind: "keep", why };
  }

  /**
   * The answer is kept, or the next model is asked, which would get the request as `next`. Where that one has no endpoint it
   * is kept too; the router does not count it at its engine any more then.
   */
  judge(requestId: string, worth: AnswerWorth, next: RouteRequest): AfterAnswer {
    const kept = this.keeps(worth);
    if (kept !== undefined) return this.keep(requestId, worth, kept);
    const asked = { kind: "request-escalated", at: this.#host.now(), requestId, ...worth, request: next } as const;
    const decision = this.#host.router.again(asked);
    if (decision.kind === "rejected") return this.keep(requestId, worth, "no-endpoint");
    if (this.number === 0) this.#desk.began();
    this.number++;
    this.attempted();
    return { kind: "escalate", decision };
  }

  ended(): void {
    if (this.number > 0) this.#desk.ended();
    this.number = 0;
  }
}
