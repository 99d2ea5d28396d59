import type { Placed } from "#core/input/decision.ts";
import { PathRouter, type PathRouterOptions } from "#core/path/path-router.ts";
import type { RouteRequest } from "#core/request/request.ts";
import { STAGES } from "#core/stages.ts";
import { type Micros, MICROS_PER_MILLI } from "#core/base/units.ts";
import { nowMicros } from "../base/clock.ts";
import { countUp, type GatewayCounters } from "../base/gateway-counters.ts";
import type { Intake, IntakeListener } from "../base/intake.ts";
import type { Input } from "#core/input/input.ts";

/** Notified of the decision on a request, and how long it waited for its turn. It must not throw. */
export type OnDecided = (decision: Placed, queuedMicros: Micros) => void;

export interface RequestRouterOptions extends Pick<PathRouterOptions, "settings" | "watch"> {
  readonly intake: Intake;
  readonly counters: Pick<GatewayCounters, "queued">;
}

/** The router as the gateway's requests reach it: an arrival is decided when its turn has come, all else at once. */
export class RequestRouter extends PathRouter {
  readonly #intake: Intake;
  readonly #counters: RequestRouterOptions["counters"];
  readonly #watch: RequestRouterOptions["watch"];
  readonly #turns: QueueTurns;

  constructor({ intake, counters, settings, watch }: RequestRouterOptions) {
    super({
      stages: STAGES,
      settings,
      watch,
      now: nowMicros,
      accept: (input) => intake.accept(input),
      decide: (input) => intake.accept(input),
      routerOf: () => intake.router,
    });
    this.#intake = intake;
    this.#counters = counters;
    this.#watch = watch;
    this.#turns = new QueueTurns(intake);
  }

  /** `readAt`: when its body had been read. */
  arrive(request: RouteRequest, readAt: Micros, decided: OnDecided): void {
    this.#watch?.deciding(request.id);
    const at = nowMicros();
    const held = at - readAt >= HELD_MICROS_MIN ? { heldMicros: at - readAt } : undefined;
    const decision = this.#intake.accept({ kind: "request-arrived", at, request, ...held });
    if (decision.kind !== "queued") return this.#decided(request.id, decision, 0, decided);
    countUp(this.#counters.queued, decision.reason);
    this.#turns.wait(request.id, (placed) => this.#decided(request.id, placed, placed.at - decision.at, decided));
  }

  #decided(requestId: string, decision: Placed, queuedMicros: Micros, decided: OnDecided): void {
    this.#watch?.decided(requestId, decision, queuedMicros);
    decided(decision, queuedMicros);
  }

  stop(): void {
    this.#turns.stop();
  }
}

/** Less is not recorded. */
const HELD_MICROS_MIN = MICROS_PER_MILLI;

/** Notified of the decision that ends a request's wait. It must not throw. */
type TurnTaken = (decision: Placed) => void;

/** Requests released in one run of the event loop; the others come in the next one. */
const RELEASED_MAX = 64;
/** setTimeout takes no more. */
const TIMEOUT_MILLIS_MAX = 2_147_483_647;

/**
 * Asks the router whose turn it is among the requests that wait, after every input and when a time has come, and has them
 * decided on again. Whose turn it is the router alone knows; this holds nothing but where to report it.
 */
export class QueueTurns implements IntakeListener {
  readonly #intake: Intake;
  readonly #now: () => Micros;
  readonly #waiting = new Map<string, TurnTaken>();
  #timer: NodeJS.Timeout | undefined;
  #isDue = false;

  constructor(intake: Intake, now: () => Micros = nowMicros) {
    this.#intake = intake;
    this.#now = now;
    intake.listen(this);
  }

  /** Requests that wait. */
  get size(): number {
    return this.#waiting.size;
  }

  /** The router put the request into its queue. */
  wait(requestId: string, taken: TurnTaken): void {
    this.#waiting.set(requestId, taken);
    this.#look();
  }

  accepted(input: Input): void {
    if (this.#waiting.size === 0) return;
    if (input.kind === "request-finished") this.#waiting.delete(input.requestId);
    this.#look();
  }

  stop(): void {
    clearTimeout(this.#timer);
  }

  /** Behind what is being done: an input must not come while listeners are notified of another one. */
  #look(): void {
    if (this.#isDue) return;
    this.#isDue = true;
    queueMicrotask(() => this.#turns());
  }

  #turns(): void {
    this.#isDue = false;
    for (let released = 0; this.#waiting.size > 0; released++) {
      if (released === RELEASED_MAX) {
        this.#isDue = true;
        setImmediate(() => this.#turns());
        return;
      }
      const at = this.#now();
      const requestId = this.#intake.router.admission.due(at);
      const taken = requestId === undefined ? undefined : this.#waiting.get(requestId);
      if (requestId === undefined || taken === undefined) break;
      const decision = this.#intake.accept({ kind: "request-released", at, requestId });
      // It was to go on and cannot: nor can what is behind it, before something happens.
      if (decision.kind === "queued") break;
      this.#waiting.delete(requestId);
      taken(decision);
    }
    this.#sleep();
  }

  #sleep(): void {
    clearTimeout(this.#timer);
    const { nextAt } = this.#intake.router.admission;
    if (this.#waiting.size === 0 || nextAt === Infinity) return;
    const millis = Math.max(1, Math.ceil((nextAt - this.#now()) / MICROS_PER_MILLI));
    this.#timer = setTimeout(() => this.#look(), Math.min(millis, TIMEOUT_MILLIS_MAX)).unref();
  }
}
