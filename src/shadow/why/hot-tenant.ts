import type { Random } from "#core/base/random.ts";
import { quantile } from "#core/base/quantile.ts";
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
const HOT_FACTOR = 2;
/** With other conversations of the same tenants it is still that much, in 95 of 100. */
const SURE_FACTOR = 1.5;
const SURE_SHARE = 0.05;
const DRAWS = 200;

/** The tenant that has engines compute most, where it is well beyond the others; undefined where nobody is. */
export function hotTenant(
  workload: WorkloadRequests,
  observed: readonly Observed[] | undefined,
  random: Random,
): HotTenant | undefined {
  const tenants = new Map<string, { place: number; tokens: number; requests: number }>();
  const conversations = new Map<string, { place: number; tokens: number }>();
  for (const { index, tenant, session, promptTokens, outputTokens } of workload) {
    const cached = observed?.[index]?.cachedTokens ?? 0;
    const tokens = promptTokens - (Number.isNaN(cached) ? 0 : cached) + outputTokens;
    const sum = tenants.get(tenant) ?? { place: tenants.size, tokens: 0, requests: 0 };
    sum.tokens += tokens;
    sum.requests++;
    tenants.set(tenant, sum);
    const key = session === "" ? String(index) : `s${session}`;
    const one = conversations.get(key) ?? { place: sum.place, tokens: 0 };
    one.tokens += tokens;
    conversations.set(key, one);
  }
  const [first] = [...tenants].sort(([, a], [, b]) => b.tokens - a.tokens);
  if (first === undefined || tenants.size < 2) return undefined;
  const [tenant, { place, tokens, requests }] = first;
  const sums = Float64Array.from(tenants.values(), (one) => one.tokens);
  const factor = factorOf(sums, place);
  if (factor < HOT_FACTOR || surely([...conversations.values()], tenants.size, place, random) < SURE_FACTOR)
    return undefined;
  return { tenant, share: tokens / sums.reduce((all, one) => all + one, 0), factor, requests };
}

/** The lower end of the factor over drawn conversations. */
function surely(
  conversations: readonly { readonly place: number; readonly tokens: number }[],
  tenants: number,
  hot: number,
  random: Random,
): number {
  const factors = Array.from({ length: DRAWS }, () => {
    const sums = new Float64Array(tenants);
    for (let left = conversations.length; left > 0; left--) {
      const { place, tokens } = conversations[random.below(conversations.length)]!;
      sums[place]! += tokens;
    }
    return factorOf(sums, hot);
  });
  return quantile(factors, SURE_SHARE);
}

function factorOf(sums: Float64Array, place: number): number {
  const all = sums.reduce((sum, one) => sum + one, 0);
  const rest = all - sums[place]!;
  return rest === 0 ? Infinity : (sums[place]! * (sums.length - 1)) / rest;
}
