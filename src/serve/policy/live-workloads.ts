import type { ServiceClasses } from "#core/admission/admission-spec.ts";
import type { ModelRewrites, WorkloadRules } from "#live/discovery/workload-rules.ts";

/** Request headers that name an InferenceObjective, first match wins. */
const OBJECTIVE_HEADERS = ["x-llm-d-inference-objective", "x-gateway-inference-objective"] as const;

/**
 * What the cluster states of the pool's workloads, as this process knows it. An objective is a service class by its name,
 * whose score is its priority; requests without a known one have 0, as its API has it.
 */
export class LiveWorkloads {
  readonly #followed: boolean;
  #priorities: WorkloadRules["priorities"] = {};
  /** Notified where priorities are other ones now. */
  changed: () => void = () => {};
  /** Notified of rewrites, whether or not they are other ones. */
  rewritten: (rewrites: ModelRewrites) => void = () => {};

  constructor(followed: boolean) {
    this.#followed = followed;
  }

  get objectiveHeaders(): readonly string[] {
    return this.#followed ? OBJECTIVE_HEADERS : [];
  }

  /** The configured classes, and the objectives beside them; of equal names the objective counts. */
  classes(configured: ServiceClasses): ServiceClasses {
    if (!this.#followed) return configured;
    return { scores: { ...configured.scores, ...this.#priorities }, defaultScore: 0 };
  }

  set({ priorities, rewrites }: WorkloadRules): void {
    this.rewritten(rewrites);
    const before = textOf(this.#priorities);
    this.#priorities = priorities;
    if (textOf(priorities) !== before) this.changed();
  }
}

function textOf(priorities: WorkloadRules["priorities"]): string {
  return JSON.stringify(Object.entries(priorities).sort(([a], [b]) => (a < b ? -1 : 1)));
}
