import { mix32, nameHash } from "../../base/random.ts";
import { ArmTally, type SavedTally } from "./arm-tally.ts";
import type { RolloutOutcome, TimeMetric } from "./outcome.ts";

/** Groups that an arm's clusters are drawn into: as many degrees of freedom say how sure a figure of theirs is. */
const GROUPS = 32;

export interface SavedGroups {
  /** Of each arm its groups; null where one has nothing. */
  readonly arms: readonly (readonly (SavedTally | null)[])[];
  /** Of each arm, requests that are clusters of their own. */
  readonly alone: readonly number[];
  /** Absent in what earlier versions saved. */
  readonly ranked?: readonly number[];
}

/** A share of an arm's requests, and what so many requests say of it: as many independent ones as `independent`. */
export interface ClusteredShare {
  readonly share: number;
  readonly requests: number;
  readonly independent: number;
  /** Groups of one size that say as much. */
  readonly groups: number;
}

/**
 * What each arm did, in groups of whole clusters (sessions, tenants): requests of one cluster are alike and stay on their
 * arm, so that only what clusters differ by shows how sure any share of requests is, and with it any quantile. Groups
 * by the cluster's name are bounded however many clusters there are, and sums over replicas are those of one.
 */
export class ClusterGroups {
  readonly #groups: readonly (ArmTally | undefined)[][];
  readonly #totals: readonly ArmTally[];
  readonly #alone: number[];
  /** The same of those that were ranked. */
  readonly #ranked: number[];
  /** Shares since the last request: comparison and limits ask for the same ones. */
  readonly #known = new Map<string, ClusteredShare>();

  constructor(arms: number, saved?: SavedGroups) {
    this.#groups = Array.from({ length: arms }, (_, arm) =>
      Array.from({ length: GROUPS }, (_group, i) => {
        const tally = saved?.arms[arm]?.[i] ?? undefined;
        return tally && new ArmTally(tally);
      }),
    );
    this.#totals = this.#groups.map((groups) => {
      const total = new ArmTally();
      for (const group of groups) if (group !== undefined) total.merge(group);
      return total;
    });
    this.#alone = Array.from({ length: arms }, (_, arm) => saved?.alone[arm] ?? 0);
    this.#ranked = Array.from({ length: arms }, (_, arm) => saved?.ranked?.[arm] ?? 0);
  }

  add(outcome: RolloutOutcome): void {
    const { arm, cluster } = outcome;
    this.#known.clear();
    const place = cluster === "" ? this.#alone[arm]!++ : mix32(nameHash(cluster) ^ GROUP_SALT);
    (this.#groups[arm]![place % GROUPS] ??= new ArmTally()).add(outcome);
    this.#totals[arm]!.add(outcome);
  }

  /** One that has been added, once it is ranked among those that ended beside it. */
  addRanked({ arm, cluster }: Pick<RolloutOutcome, "arm" | "cluster">, isSlow: boolean): void {
    this.#known.clear();
    const place = cluster === "" ? this.#ranked[arm]!++ : mix32(nameHash(cluster) ^ GROUP_SALT);
    (this.#groups[arm]![place % GROUPS] ??= new ArmTally()).addRanked(isSlow);
    this.#totals[arm]!.addRanked(isSlow);
  }

  /** All that an arm did. */
  total(arm: number): ArmTally {
    return this.#totals[arm]!;
  }

  /** Of an arm's requests with that time, those that took longer. */
  above(arm: number, metric: TimeMetric, micros: number): ClusteredShare {
    const key = `${arm} ${metric} ${micros}`;
    let share = this.#known.get(key);
    if (share === undefined) {
      share = this.#share(arm, (tally) => [tally.above(metric, micros), tally.samples(metric)]);
      this.#known.set(key, share);
    }
    return share;
  }

  /** Of what a group has, some of all. */
  shareOf(arm: number, of: (tally: ArmTally) => readonly [some: number, all: number]): ClusteredShare {
    return this.#share(arm, of);
  }

  saved(): SavedGroups {
    const arms = this.#groups.map((groups) => groups.map((tally) => tally?.saved() ?? null));
    return { arms, alone: [...this.#alone], ranked: [...this.#ranked] };
  }

  /**
   * The variance of a share as a ratio of sums over groups, each left out once (the jackknife): a group that is much of
   * the arm pulls the share towards itself and would look surer than it is.
   */
  #share(arm: number, of: (tally: ArmTally) => readonly [some: number, all: number]): ClusteredShare {
    const counts: (readonly [number, number])[] = [];
    let [some, all, squares] = [0, 0, 0];
    for (const tally of this.#groups[arm]!) {
      if (tally === undefined) continue;
      const [hits, requests] = of(tally);
      if (requests === 0) continue;
      counts.push([hits, requests]);
      some += hits;
      all += requests;
      squares += requests * requests;
    }
    const groups = all === 0 ? 0 : (all * all) / squares;
    const share = some / all;
    if (counts.length < 2) return { share, requests: all, independent: 0, groups };
    let left = 0;
    for (const [hits, requests] of counts) left += ((hits - share * requests) / (1 - requests / all)) ** 2;
    const variance = ((counts.length - 1) / counts.length) * (left / (all * all));
    // Chance alone makes requests no more alike than independent ones are.
    const independent = variance > 0 ? Math.min(all, (share * (1 - share)) / variance) : all;
    return { share, requests: all, independent, groups };
  }
}

/** Groups have nothing to do with the draw of arms. */
const GROUP_SALT = 0x2c1b3c6d;
