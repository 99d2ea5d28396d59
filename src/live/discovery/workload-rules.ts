import type { KubernetesObject } from "./kubernetes-objects.ts";
import { mix32, nameHash } from "#core/base/random.ts";

/** What those who own workloads state of a pool: how urgent requests are, and which model they get in place of another. */
export interface WorkloadRules {
  /** Priorities of objectives by name: greater goes first, below 0 may be shed. */
  readonly priorities: Readonly<Record<string, number>>;
  readonly rewrites: ModelRewrites;
}

/** The pool that rules are of. */
export interface RuledPool {
  readonly name: string;
  /** Its API group. */
  readonly group: string;
}

interface OfPool extends KubernetesObject {
  readonly spec?: { readonly poolRef?: { readonly name?: string; readonly group?: string } };
}

/** What is read of an InferenceObjective. */
export interface InferenceObjective extends OfPool {
  readonly spec?: OfPool["spec"] & { readonly priority?: number };
}

/** What is read of an InferenceModelRewrite. */
export interface InferenceModelRewrite extends OfPool {
  readonly spec?: OfPool["spec"] & {
    readonly rules?: readonly {
      readonly matches?: readonly { readonly model?: { readonly value?: string } }[];
      readonly targets?: readonly { readonly modelRewrite?: string; readonly weight?: number }[];
    }[];
  };
}

/** Objectives of the pool that are not being deleted; one without a priority has 0, as its API has it. */
export function prioritiesOf(
  objectives: Iterable<InferenceObjective>,
  pool: RuledPool,
): Readonly<Record<string, number>> {
  const known = [...objectives].filter((one) => isOf(one, pool));
  return Object.fromEntries(known.map(({ metadata, spec }) => [metadata?.name ?? "", spec?.priority ?? 0]));
}

interface Targets {
  readonly models: readonly string[];
  /** Sums of weights up to each of them. */
  readonly upTo: readonly number[];
}

/** What model rewrites state, as a message between threads may have it. */
export interface RewriteRules {
  readonly exact: ReadonlyMap<string, Targets>;
  /** Of models that have none of their own. */
  readonly all: Targets | undefined;
}

/**
 * Which model a request gets in place of the one it names. A rule for that very model goes before one for all; of two
 * the older one counts, of equal age the first by name. Requests of one conversation get the same target, so that they
 * find their prefixes; over conversations targets have shares by weight.
 */
export class ModelRewrites {
  static readonly none = new ModelRewrites([], { name: "", group: "" });

  readonly rules: RewriteRules;

  constructor(rewrites: Iterable<InferenceModelRewrite>, pool: RuledPool, known?: RewriteRules) {
    const exact = new Map(known?.exact);
    let all = known?.all;
    for (const { spec } of [...rewrites].filter((one) => isOf(one, pool)).sort(byAge)) {
      for (const { matches = [], targets = [] } of spec?.rules ?? []) {
        const to = targetsOf(targets);
        if (to === undefined) continue;
        if (matches.length === 0) all ??= to;
        for (const { model } of matches) {
          if (model?.value !== undefined && !exact.has(model.value)) exact.set(model.value, to);
        }
      }
    }
    this.rules = { exact, all };
  }

  /** Those of another thread. */
  static from(rules: RewriteRules): ModelRewrites {
    return new ModelRewrites([], { name: "", group: "" }, rules);
  }

  get isEmpty(): boolean {
    return this.rules.exact.size === 0 && this.rules.all === undefined;
  }

  /** `by` is the conversation, or where there is none the request. */
  targetOf(model: string, by: string): string {
    const targets = this.rules.exact.get(model) ?? this.rules.all;
    if (targets === undefined) return model;
    const { models, upTo } = targets;
    const draw = (mix32(nameHash(`${model} ${by}`)) / 2 ** 32) * upTo.at(-1)!;
    return models[upTo.findIndex((sum) => draw < sum)] ?? model;
  }
}

/** Without any weight all are equal; beside one that has a weight, one without has none of the traffic. */
function targetsOf(
  targets: readonly { readonly modelRewrite?: string; readonly weight?: number }[],
): Targets | undefined {
  const named = targets.filter(({ modelRewrite }) => modelRewrite !== undefined && modelRewrite !== "");
  const isWeighted = named.some(({ weight }) => weight !== undefined);
  let sum = 0;
  const upTo = named.map(({ weight }) => (sum += isWeighted ? Math.max(0, weight ?? 0) : 1));
  return sum > 0 ? { models: named.map(({ modelRewrite }) => modelRewrite!), upTo } : undefined;
}

function isOf({ metadata, spec }: OfPool, { name, group }: RuledPool): boolean {
  const ref = spec?.poolRef;
  return metadata?.deletionTimestamp === undefined && ref?.name === name && (ref.group ?? group) === group;
}

function byAge(a: KubernetesObject, b: KubernetesObject): number {
  const times = [a, b].map(({ metadata }) => new Date(metadata?.creationTimestamp ?? 0).getTime());
  return times[0]! - times[1]! || ((a.metadata?.name ?? "") < (b.metadata?.name ?? "") ? -1 : 1);
}
