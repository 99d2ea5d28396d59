import { TOKEN_LOSSES, type TokenLoss } from "./token-loss.ts";
import type { TokenRow } from "./token-ledger.ts";

export interface LossSum {
  readonly loss: TokenLoss;
  readonly tokens: number;
  readonly requests: number;
  /** Of policy: what weighed more; of others: the endpoints that were chosen. The largest first. */
  readonly by: readonly { readonly name: string; readonly tokens: number }[];
}

/** `promptTokens` = `newTokens` + `possible`; `possible` = `hit` + all of `losses`. */
export interface TokenSummary {
  readonly requests: number;
  readonly promptTokens: number;
  /** Nobody had sent them before. */
  readonly newTokens: number;
  readonly possible: number;
  readonly hit: number;
  /** The largest first; those without a token are left out. */
  readonly losses: readonly LossSum[];
  /** Requests whose engine reported no cached tokens, so that its cache was taken by its size. */
  readonly modelled: number;
  /** Requests whose engine's cache is its own word, by its KV events. */
  readonly byEvents: number;
  /** What the gateway expected of the chosen endpoints beyond what they had, and what they had beyond it. */
  readonly overExpected: number;
  readonly underExpected: number;
}

const BY_MAX = 5;
/** Share of the possible tokens that is lost for it; an index that is only late loses a percent or two. */
const INDEX_SHARE_MIN = 0.05;

/** Whether what the gateway did not know of caches cost so many cached tokens that it may be why answers are slow. */
export function knewTooLittle({ losses, possible }: TokenSummary): boolean {
  const lost = losses.find(({ loss }) => loss === "index")?.tokens ?? 0;
  return lost >= INDEX_SHARE_MIN * possible && lost > 0;
}

export function tokenSummary(rows: readonly TokenRow[]): TokenSummary {
  const sums = new Map(TOKEN_LOSSES.map((loss) => [loss, { tokens: 0, requests: 0, by: new Map<string, number>() }]));
  let [promptTokens, possible, hit, modelled, byEvents, over, under] = [0, 0, 0, 0, 0, 0, 0];
  for (const row of rows) {
    promptTokens += row.promptTokens;
    possible += row.possible;
    hit += row.hit;
    if (row.isModelled) modelled++;
    if (row.isByEvents) byEvents++;
    over += Math.max(0, row.expected - row.hit);
    under += Math.max(0, row.hit - row.expected);
    for (const { loss, tokens } of row.losses) {
      const sum = sums.get(loss)!;
      sum.tokens += tokens;
      sum.requests++;
      const name = loss === "policy" ? (row.elsewhere?.against ?? "") : row.endpoint;
      sum.by.set(name, (sum.by.get(name) ?? 0) + tokens);
    }
  }
  const losses = [...sums]
    .filter(([, { tokens }]) => tokens > 0)
    .map(([loss, { tokens, requests, by }]): LossSum => {
      const names = [...by].map(([name, of]) => ({ name, tokens: of })).sort((a, b) => b.tokens - a.tokens);
      return { loss, tokens, requests, by: names.slice(0, BY_MAX) };
    })
    .sort((a, b) => b.tokens - a.tokens);
  return {
    requests: rows.length,
    promptTokens,
    newTokens: promptTokens - possible,
    possible,
    hit,
    losses,
    modelled,
    byEvents,
    overExpected: over,
    underExpected: under,
  };
}
