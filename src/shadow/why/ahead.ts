import type { WorkloadRequests } from "#shadow/recorded/packed-workload.ts";
import type { WorldOutcome } from "./world.ts";

/** Whose prompts engines computed while requests waited for their first token. */
export interface WorkAhead {
  /** Prompt tokens of others that were computed meanwhile at the same engine, a request on average. */
  readonly tokens: number;
  readonly tenants: readonly { readonly tenant: string; readonly share: number }[];
  /** The prompts that had most of it. */
  readonly longest: readonly AheadRequest[];
}

export interface AheadRequest {
  /** Place in the workload. */
  readonly index: number;
  readonly tenant: string;
  /** Tokens that its engine computed of it. */
  readonly computedTokens: number;
  /** Requests of those asked about that waited beside it. */
  readonly waited: number;
}

const LISTED_MAX = 3;

/** For requests at these places, what was computed at their engines between their arrival and their first token. */
export function aheadOf(outcome: WorldOutcome, workload: WorkloadRequests, rows: Int32Array): WorkAhead {
  const { arrivalMicros, ttftMicros, queueMicros, endpoint, cachedTokens } = outcome;
  const byEngine = new Map<number, Prefill[]>();
  for (const { index, promptTokens, tenant } of workload) {
    const at = arrivalMicros[index]!;
    if (Number.isNaN(at) || Number.isNaN(ttftMicros[index]!)) continue;
    const prefills = byEngine.get(endpoint[index]!) ?? [];
    byEngine.set(endpoint[index]!, prefills);
    const tokens = promptTokens - cachedTokens[index]!;
    prefills.push({ index, tenant, tokens, from: at + queueMicros[index]!, to: at + ttftMicros[index]! });
  }
  let longest = 0;
  for (const prefills of byEngine.values()) {
    prefills.sort((a, b) => a.from - b.from);
    for (const { from, to } of prefills) longest = Math.max(longest, to - from);
  }
  const tenants = new Map<string, number>();
  const requests = new Map<Prefill, { tokens: number; waited: number }>();
  let all = 0;
  for (const index of rows) {
    const [from, to] = [arrivalMicros[index]!, arrivalMicros[index]! + ttftMicros[index]!];
    const prefills = byEngine.get(endpoint[index]!) ?? [];
    for (let i = firstFrom(prefills, from - longest); i < prefills.length && prefills[i]!.from < to; i++) {
      const other = prefills[i]!;
      if (other.index === index || other.to <= from) continue;
      const part = (Math.min(to, other.to) - Math.max(from, other.from)) / (other.to - other.from);
      const tokens = other.tokens * part;
      if (!(tokens > 0)) continue;
      all += tokens;
      tenants.set(other.tenant, (tenants.get(other.tenant) ?? 0) + tokens);
      const sum = requests.get(other) ?? { tokens: 0, waited: 0 };
      requests.set(other, { tokens: sum.tokens + tokens, waited: sum.waited + 1 });
    }
  }
  const most = [...requests].sort(([, a], [, b]) => b.tokens - a.tokens).slice(0, LISTED_MAX);
  return {
    tokens: rows.length === 0 ? 0 : all / rows.length,
    tenants: [...tenants]
      .map(([tenant, tokens]) => ({ tenant, share: tokens / all }))
      .sort((a, b) => b.share - a.share)
      .slice(0, LISTED_MAX),
    longest: most.map(([{ index, tenant, tokens }, { waited }]) => ({ index, tenant, computedTokens: tokens, waited })),
  };
}

interface Prefill {
  readonly index: number;
  readonly tenant: string;
  readonly tokens: number;
  readonly from: number;
  readonly to: number;
}

function firstFrom(prefills: readonly Prefill[], at: number): number {
  let [low, high] = [0, prefills.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (prefills[middle]!.from < at) low = middle + 1;
    else high = middle;
  }
  return low;
}
