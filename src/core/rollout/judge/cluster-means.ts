import type { MeanEstimate } from "./confidence-sequence.ts";

/** Clusters that may still grow; the one that was silent longest is final when there are more. */
const CLUSTERS_MAX = 65_536;

interface Cluster {
  readonly arm: number;
  count: number;
  value: number;
  covariate: number;
}

interface ArmSums {
  count: number;
  value: number;
  covariate: number;
  valueSquared: number;
  covariateSquared: number;
  product: number;
}

export interface SavedClusters {
  readonly finals: number;
  readonly arms: readonly ArmSums[];
  readonly clusters: readonly (readonly [string, Cluster])[];
}

/**
 * Means of one figure by cluster (session, tenant, request), and what the arms' means over clusters differ by. Requests of
 * one conversation are alike, so a conversation counts once, however many turns it has.
 */
export class ClusterMeans {
  readonly #arms: readonly ArmSums[];
  readonly #clusters: Map<string, Cluster>;
  /** Clusters that were made final for want of room; one of them that speaks again counts as another. */
  finals: number;

  constructor(arms: number, saved?: SavedClusters) {
    const none = { count: 0, value: 0, covariate: 0, valueSquared: 0, covariateSquared: 0, product: 0 };
    this.#arms = Array.from({ length: arms }, (_, arm) => ({ ...(saved?.arms[arm] ?? none) }));
    this.#clusters = new Map(saved?.clusters.map(([name, cluster]) => [name, { ...cluster }]));
    this.finals = saved?.finals ?? 0;
  }

  /** `covariate` is 0 where there is none. A cluster that came to another arm counts for each. */
  add(arm: number, name: string, value: number, covariate: number): void {
    const key = `${arm} ${name}`;
    const cluster = this.#clusters.get(key) ?? { arm, count: 0, value: 0, covariate: 0 };
    if (cluster.count > 0) weigh(this.#arms[arm]!, cluster, -1);
    cluster.count++;
    cluster.value += value;
    cluster.covariate += covariate;
    weigh(this.#arms[arm]!, cluster, 1);
    this.#clusters.delete(key);
    this.#clusters.set(key, cluster);
    if (this.#clusters.size <= CLUSTERS_MAX) return;
    this.finals++;
    this.#clusters.delete(this.#clusters.keys().next().value!);
  }

  /** An arm's mean less the control's, as measured or less what the covariate explains. */
  estimate(arm: number, adjusted: boolean): MeanEstimate {
    const pair = [this.#arms[0]!, this.#arms[arm]!] as const;
    const count = pair[0].count + pair[1].count;
    // Of the smaller arm: a canary's few sessions say how sure its mean is, not the many of its control.
    const degrees = Math.max(0, Math.min(pair[0].count, pair[1].count) - 1);
    const explained = pair.reduce((sum, one) => sum + one.product - (one.value * one.covariate) / one.count, 0);
    const varied = pair.reduce((sum, one) => sum + one.covariateSquared - one.covariate ** 2 / one.count, 0);
    const slope = adjusted && varied > 0 ? explained / varied : 0;
    const [control, other] = pair.map((one) => ({
      mean: (one.value - slope * one.covariate) / one.count,
      ofMean: residualVariance(one, slope) / one.count,
    })) as [{ mean: number; ofMean: number }, { mean: number; ofMean: number }];
    const deviation = degrees === 0 ? NaN : Math.sqrt(count * (control.ofMean + other.ofMean));
    return { count, mean: other.mean - control.mean, deviation, degrees };
  }

  saved(): SavedClusters {
    const clusters = [...this.#clusters].map(([name, cluster]) => [name, { ...cluster }] as const);
    return { finals: this.finals, arms: this.#arms.map((sums) => ({ ...sums })), clusters };
  }
}

function weigh(sums: ArmSums, cluster: Cluster, sign: 1 | -1): void {
  const value = cluster.value / cluster.count;
  const covariate = cluster.covariate / cluster.count;
  sums.count += sign;
  sums.value += sign * value;
  sums.covariate += sign * covariate;
  sums.valueSquared += sign * value * value;
  sums.covariateSquared += sign * covariate * covariate;
  sums.product += sign * value * covariate;
}

function residualVariance(sums: ArmSums, slope: number): number {
  const { count } = sums;
  const values = sums.valueSquared - sums.value ** 2 / count;
  const products = sums.product - (sums.value * sums.covariate) / count;
  const covariates = sums.covariateSquared - sums.covariate ** 2 / count;
  return Math.max(0, values - 2 * slope * products + slope * slope * covariates) / (count - 1);
}
