import type { RolloutBook } from "#core/rollout/rollout-book.ts";
import type { RolloutState } from "#core/rollout/rollout-state.ts";
import type { FaultEvent } from "#live/log/fault-log.ts";

interface Engine {
  readonly id: string;
  readonly labels?: Readonly<Record<string, string>>;
}

export interface LosingEnginesOptions {
  readonly all: () => readonly Engine[];
  readonly isCordoned: (id: string) => boolean;
  readonly cordon: (id: string) => void;
  readonly report: (event: FaultEvent) => void;
}

/**
 * Where engines were compared by a label, those that a promotion leaves behind get no new requests: each is cordoned once,
 * those that join later too, so that they drain and can be taken away. An operator who uncordons one has the last word
 * until a restart. Of two promotions by one label the later one stands; nothing is cordoned while no engine of the promoted
 * side has requests.
 */
export class LosingEngines {
  readonly #options: LosingEnginesOptions;
  /** By rollout, those that were cordoned for it. */
  readonly #done = new Map<string, Set<string>>();

  constructor(options: LosingEnginesOptions) {
    this.#options = options;
  }

  follow(book: RolloutBook): void {
    const standing = standingByLabel(book);
    for (const name of this.#done.keys()) if (!standing.some(({ plan }) => plan.name === name)) this.#done.delete(name);
    for (const state of standing) this.#cordonFor(state);
  }

  #cordonFor({ plan: { name, arms, design }, promoted }: RolloutState): void {
    if (design.kind !== "pools") return;
    const { all, isCordoned, cordon, report } = this.#options;
    const winner = arms.find((arm) => arm.name === promoted)?.pool;
    const losers = new Set(arms.map(({ pool }) => pool).filter((pool) => pool !== winner));
    const labelled = all().map(({ id, labels }) => ({ id, value: labels?.[design.label] }));
    if (!labelled.some(({ id, value }) => value === winner && !isCordoned(id))) return;
    const done = this.#done.get(name) ?? new Set<string>();
    this.#done.set(name, done);
    for (const { id, value } of labelled) {
      if (value === undefined || !losers.has(value) || done.has(id)) continue;
      done.add(id);
      if (isCordoned(id)) continue;
      cordon(id);
      const detail = `${name}: ${id} has ${design.label}=${value}, and ${winner} was promoted`;
      report({ kind: "rollout-step", detail, done: "it is cordoned: no new requests, those in flight go on" });
    }
  }
}

/** Of each label of engines that were compared, the latest rollout that was promoted. */
function standingByLabel(book: RolloutBook): RolloutState[] {
  const latest = new Map<string, RolloutState>();
  for (const state of book) {
    const { design } = state.plan;
    if (state.phase !== "promoted" || design.kind !== "pools" || design.redrawn !== true) continue;
    const key = `${state.plan.model} ${design.label}`;
    if ((latest.get(key)?.at ?? -Infinity) <= state.at) latest.set(key, state);
  }
  return [...latest.values()];
}
