import type { Input } from "#core/input/input.ts";
import type { Micros } from "#core/base/units.ts";
import type { RouterGroup } from "./routers/router-group.ts";
import type { SimulationEvent } from "./path/simulation-event.ts";

/** The simulation as the looks at its rollouts see it. */
export interface LookHost {
  readonly router: RouterGroup;
  accept(input: Input): void;
  later(at: Micros, event: SimulationEvent): void;
}

/** Has the judges of rollouts look while one runs, and takes the steps that they call for, as the live host does. */
export class RolloutLooks {
  readonly #host: LookHost;
  readonly #everyMicros: Micros;
  #waits = false;

  /** Nobody looks where `everyMicros` is left out. */
  constructor(host: LookHost, everyMicros: Micros = Infinity) {
    this.#host = host;
    this.#everyMicros = everyMicros;
  }

  /** After the router took an input. */
  follow({ kind, at }: Input): void {
    if (this.#waits || this.#everyMicros === Infinity || !kind.startsWith("rollout-")) return;
    const [router] = this.#host.router.routers;
    if (!router!.rollouts.book.some(({ phase }) => phase === "running")) return;
    this.#waits = true;
    this.#host.later(at + this.#everyMicros, { kind: "look" });
  }

  take(at: Micros): void {
    this.#waits = false;
    this.#host.accept({ kind: "rollout-look", at });
    // Several routers run one rollout in step: what one of them calls for is taken by all.
    const proposals = this.#host.router.routers.flatMap(({ rollouts }) => rollouts.proposals);
    const moved = new Set<string>();
    for (const step of proposals) {
      if (moved.has(step.rollout)) continue;
      moved.add(step.rollout);
      this.#host.accept(step);
    }
  }
}
