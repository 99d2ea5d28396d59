import type { Decision, Placed } from "#core/input/decision.ts";
import type { AskingInput, Input, RequestAgain } from "#core/input/input.ts";
import type { Router } from "#core/router.ts";
import { MICROS_PER_MILLI, type Micros } from "#core/base/units.ts";

/**
 * Sees every input in order, with the decision that it caused and the time which that took. It must return at once and
 * never throw.
 */
export interface IntakeListener {
  accepted(input: Input, decision: Decision | undefined, decisionMicros: number): void;
}

/**
 * The only way into the live router: whatever reaches the core reaches the recorder, the metrics and the shadow too, in
 * the same order.
 */
export class Intake {
  readonly router: Router;
  readonly #listeners: { readonly listener: IntakeListener; readonly kinds: ReadonlySet<string> | undefined }[] = [];
  /** Those that are notified of each kind of input, in their order. */
  readonly #byKind = new Map<string, readonly IntakeListener[]>();
  /** Of the latest input. */
  lastAt: Micros = 0;

  constructor(router: Router) {
    this.router = router;
  }

  /** Notifies the listener of every input, or of those kinds alone. */
  listen(listener: IntakeListener, kinds?: readonly Input["kind"][]): void {
    this.#listeners.push({ listener, kinds: kinds && new Set(kinds) });
    this.#byKind.clear();
  }

  /** It is notified of nothing more. */
  forget(listener: IntakeListener): void {
    const place = this.#listeners.findIndex((one) => one.listener === listener);
    if (place >= 0) this.#listeners.splice(place, 1);
    this.#byKind.clear();
  }

  accept(input: RequestAgain): Placed;
  accept(input: AskingInput): Decision;
  accept(input: Input): Decision | undefined;
  accept(input: Input): Decision | undefined {
    this.lastAt = input.at;
    const startMillis = performance.now();
    const decision = this.router.accept(input);
    const decisionMicros = decision === undefined ? 0 : (performance.now() - startMillis) * MICROS_PER_MILLI;
    for (const listener of this.#byKind.get(input.kind) ?? this.#listenersOf(input)) {
      listener.accepted(input, decision, decisionMicros);
    }
    return decision;
  }

  #listenersOf({ kind }: Input): readonly IntakeListener[] {
    const listening = this.#listeners
      .filter(({ kinds }) => kinds === undefined || kinds.has(kind))
      .map(({ listener }) => listener);
    this.#byKind.set(kind, listening);
    return listening;
  }
}
