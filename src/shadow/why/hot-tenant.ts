import type { WorkloadRequests } from "#shadow/recorded/packed-workload.ts";
import type { Observed } from "#shadow/recorded/observed.ts";

export interface HotTenant {
  readonly tenant: string;
  /** Of all tokens that engines computed. */
  readonly share: number;
  /** Times the mean of the others. */
  readonly factor: number;
  readonly requests: number;
}

/** Times what the others ask for on average, from which on a tenant is one that may be in their way. */
const HOT_FACTOR = 3;

/** The tenant that has engines compute most, where it is well beyond the others; undefined where nobody is. */
export function hotTenant(
  workload: WorkloadRequests,
  observed: readonly Observed[] | undefined,
): HotTenant | undefined {
  const work = new Map<string, { tokens: number; requests: number }>();
  for (const { index, tenant, promptTokens, outputTokens } of workload) {
    const cached = observed?.[index]?.cachedTokens ?? 0;
    const sum = work.get(tenant) ?? { tokens: 0, requests: 0 };
    sum.tokens += promptTokens - (Number.isNaN(cached) ? 0 : cached) + outputTokens;
    sum.requests++;
    work.set(tenant, sum);
  }
  const [first, ...others] = [...work].sort(([, a], [, b]) => b.tokens - a.tokens);
  if (first === undefined || others.length === 0) return undefined;
  const rest = others.reduce((sum, [, { tokens }]) => sum + tokens, 0);
  const [tenant, { tokens, requests }] = first;
  const factor = tokens / (rest / others.length);
  return factor >= HOT_FACTOR ? { tenant, share: tokens / (tokens + rest), factor, requests } : undefined;
}
