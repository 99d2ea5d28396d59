import { RecentMap } from "../../base/recent-map.ts";
import type { MeanEstimate } from "./confidence-sequence.ts";

/** Clusters that may still grow; those that were silent longest are final when there are more. */
const CLUSTERS_MAX = 65_536;

interface Cluster {
  readonly arm: number;
  /** Requests, and the sums of what was measured and predicted of them. */
  count: number;
  value: number;
  covariate: number;
}

/** Of an arm's clusters: how many, and sums of their requests, values and covariates, of squares and of products. */
interface ArmSums {
  clusters: number;
  count: number;
  value: number;
  covariate: number;
  countSquared: number;
  valueSquared: number;
  covariateSquared: number;
  valueByCount: number;
  covariateByCount: number;
  product: number;
  /** Of third powers: of the counts and the values, and of one times the square of the other. */
  countCubed: number;
  valueByCountSquared: number;
  valueSquaredByCount: number;
  valueCubed: number;
}

export interface SavedClusters {
  readonly finals: number;
  readonly arms: readonly ArmSums[];
  readonly clusters: readonly (readonly [string, Cluster])[];
}

/**
 * Means of one figure over requests, and how sure they are, by cluster (session, tenant, request): what was drawn to an arm
 * is a cluster, and requests of one are alike. An arm's mean is a ratio of sums over clusters (requests' values over
 * requests), with the deviation by linearization: A. Deng, U. Knoblich and J. Lu, "Applying the delta method in metric
 * analytics" (2018).
 */
export class ClusterMeans {
  readonly #arms: readonly ArmSums[];
  readonly #clusters = new RecentMap<string, Cluster>(CLUSTERS_MAX, () => this.finals++);
  /** Clusters that were made final for want of room; one of them that comes again counts as another. */
  finals: number;

  constructor(arms: number, saved?: SavedClusters) {
    this.#arms = Array.from({ length: arms }, (_, arm) => ({ ...NOTHING, ...saved?.arms[arm] }));
    this.finals = saved?.finals ?? 0;
    for (const [name, cluster] of saved?.clusters ?? []) this.#clusters.set(name, { ...cluster });
  }

  /**
   * Where there is no covariate the mean of those that there were stands for it, which explains nothing. A cluster that
   * came to another arm counts for each; one without a name is final at once.
   */
  add(arm: number, name: string, value: number, known: number | undefined): void {
    const covariate = known ?? this.#meanCovariate();
    // A request is over: nothing of it is to come.
    if (name === "") return weigh(this.#arms[arm]!, { arm, count: 1, value, covariate }, 1);
    const key = `${arm} ${name}`;
    const cluster = this.#clusters.get(key) ?? { arm, count: 0, value: 0, covariate: 0 };
    if (cluster.count > 0) weigh(this.#arms[arm]!, cluster, -1);
    cluster.count++;
    cluster.value += value;
    cluster.covariate += covariate;
    weigh(this.#arms[arm]!, cluster, 1);
    this.#clusters.set(key, cluster);
  }

  /** An arm's mean less the control's, as measured or less what the covariate explains. */
  estimate(arm: number, adjusted: boolean): MeanEstimate {
    const [control, other] = [this.#arms[0]!, this.#arms[arm]!];
    const count = control.clusters + other.clusters;
    // Of the arm with fewer: a canary's few sessions say how sure its mean is, not the many of its control.
    const degrees = Math.max(0, Math.min(evenClusters(control), evenClusters(other)) - 1);
    const varied = covariatesLeft(control) + covariatesLeft(other);
    const slope = adjusted && varied > 0 ? (productsLeft(control) + productsLeft(other)) / varied : 0;
    const mean = meanLess(other, slope) - meanLess(control, slope);
    const ofMeans = varianceOfMean(control, slope) + varianceOfMean(other, slope);
    const deviation = degrees === 0 ? NaN : Math.sqrt(count * ofMeans);
    return { count, mean, deviation, degrees, skewness: skewness(control) };
  }

  /**
   * Each arm's share of the clusters, and how many were drawn: not of requests, since whoever is answered later may ask less
   * often.
   */
  drawn(): { readonly shares: readonly number[]; readonly draws: number } {
    const draws = this.#arms.reduce((all, arm) => all + arm.clusters, 0);
    return { shares: this.#arms.map((arm) => arm.clusters / draws), draws };
  }

  #meanCovariate(): number {
    const [sum, count] = this.#arms.reduce(([s, c], one) => [s + one.covariate, c + one.count] as const, [0, 0]);
    return count === 0 ? 0 : sum / count;
  }

  saved(): SavedClusters {
    const clusters = [...this.#clusters.entries()].map(([name, cluster]) => [name, { ...cluster }] as const);
    return { finals: this.finals, arms: this.#arms.map((sums) => ({ ...sums })), clusters };
  }
}

const NOTHING: Readonly<ArmSums> = {
  clusters: 0,
  count: 0,
  value: 0,
  covariate: 0,
  countSquared: 0,
  valueSquared: 0,
  covariateSquared: 0,
  valueByCount: 0,
  covariateByCount: 0,
  product: 0,
  countCubed: 0,
  valueByCountSquared: 0,
  valueSquaredByCount: 0,
  valueCubed: 0,
};

function weigh(sums: ArmSums, { count, value, covariate }: Cluster, sign: 1 | -1): void {
  sums.clusters += sign;
  sums.count += sign * count;
  sums.value += sign * value;
  sums.covariate += sign * covariate;
  sums.countSquared += sign * count * count;
  sums.valueSquared += sign * value * value;
  sums.covariateSquared += sign * covariate * covariate;
  sums.valueByCount += sign * value * count;
  sums.covariateByCount += sign * covariate * count;
  sums.product += sign * value * covariate;
  sums.countCubed += sign * count ** 3;
  sums.valueByCountSquared += sign * value * count * count;
  sums.valueSquaredByCount += sign * value * value * count;
  sums.valueCubed += sign * value ** 3;
}

/**
 * As many clusters of one size say as much (L. Kish's effective size, 1965): where one tenant has half of an arm's
 * requests, the arm's mean is as sure as one of three or four tenants.
 */
function evenClusters({ clusters, count, countSquared }: ArmSums): number {
  return clusters === 0 ? 0 : (count * count) / countSquared;
}

function meanLess({ count, value, covariate }: ArmSums, slope: number): number {
  return (value - slope * covariate) / count;
}

function varianceOfMean(sums: ArmSums, slope: number): number {
  const { clusters, count } = sums;
  const left =
    valuesLeft(sums) - 2 * slope * productsLeft(sums) + slope * slope * (slope === 0 ? 0 : covariatesLeft(sums));
  return ((Math.max(0, left) / count) * clusters) / ((clusters - 1) * count);
}

/** Sums of squares and products of what clusters' sums differ by from their requests times the arm's mean. */
function valuesLeft({ count, value, countSquared, valueSquared, valueByCount }: ArmSums): number {
  const mean = value / count;
  return valueSquared - 2 * mean * valueByCount + mean * mean * countSquared;
}

/** Of what clusters' sums differ by from their requests times the arm's mean; 0 where all are alike. */
function skewness(sums: ArmSums): number {
  const { clusters, count, value, countCubed, valueByCountSquared, valueSquaredByCount, valueCubed } = sums;
  const mean = value / count;
  const cubes =
    valueCubed - 3 * mean * valueSquaredByCount + 3 * mean * mean * valueByCountSquared - mean ** 3 * countCubed;
  const variance = valuesLeft(sums) / clusters;
  return variance > 1e-9 * mean * mean ? cubes / clusters / variance ** 1.5 : 0;
}

function covariatesLeft(sums: ArmSums): number {
  const { clusters, count, covariate, countSquared, covariateSquared, covariateByCount } = sums;
  if (clusters === 0) return 0;
  const mean = covariate / count;
  const left = covariateSquared - 2 * mean * covariateByCount + mean * mean * countSquared;
  // What rounding leaves of values that are all alike explains nothing.
  return left > 1e-12 * covariateSquared ? left : 0;
}

function productsLeft(sums: ArmSums): number {
  const { count, value, covariate, countSquared, product, covariateByCount, valueByCount } = sums;
  if (count === 0) return 0;
  const mean = value / count;
  const middle = covariate / count;
  return product - mean * covariateByCount - middle * valueByCount + mean * middle * countSquared;
}
