import { loadProfile } from "#config/profile-file.ts";
import type { Load } from "#core/endpoint/endpoint.ts";
import type { Input } from "#core/input.ts";
import { DualIndex } from "#core/prefix/dual-index.ts";
import { Router } from "#core/router.ts";
import type { Micros } from "#core/units.ts";
import { type Arrival, BLOCK_TOKENS } from "./arrivals.ts";

/** What became of an arrival, times on the clock of the arrivals. */
export interface Served {
  readonly arrival: Arrival;
  readonly sentAt: Micros;
  readonly endedAt: Micros;
  readonly endpoint: string;
  readonly cachedTokens: number;
}

/** What a scrape of an engine showed. */
export interface Scraped {
  readonly at: Micros;
  readonly endpoint: string;
  readonly load: Load;
}

export interface Agreement {
  /** Decisions that another router made among this policy's best endpoints. */
  readonly among: number;
  /**
   * Of those that are not: where one was among the best by gauges that came within the next interval, or the one
   * before.
   */
  readonly withinAnInterval: number;
  readonly decisions: number;
  /** Requests that this policy's ties would have given to each endpoint, by its share of each decision. */
  readonly expected: ReadonlyMap<string, number>;
}

/**
 * Another router's decisions, one after the other, before gnomon's own router with a profile: each request is put where the
 * other one had put it, so that both have the same past, and what the profile would have chosen is looked at.
 */
export function follow(
  profile: string,
  endpoints: readonly string[],
  kvCapacityTokens: number,
  served: readonly Served[],
  scraped: readonly Scraped[],
): Agreement {
  const expected = new Map(endpoints.map((id) => [id, 0]));
  const bests = [0, -1, 1].map((shift) => bestOf(profile, endpoints, kvCapacityTokens, served, scraped, shift));
  let [among, withinAnInterval] = [0, 0];
  for (const { arrival, endpoint } of served) {
    const best = bests[0]!.get(arrival.id)!;
    for (const id of best) expected.set(id, expected.get(id)! + 1 / best.length);
    if (best.includes(endpoint)) among++;
    else if (bests.some((all) => all.get(arrival.id)!.includes(endpoint))) withinAnInterval++;
  }
  return { among, withinAnInterval, decisions: served.length, expected };
}

/** The endpoints with the highest total at each decision; gauges come `shift` scrapes later than they did. */
function bestOf(
  profile: string,
  endpoints: readonly string[],
  kvCapacityTokens: number,
  served: readonly Served[],
  scraped: readonly Scraped[],
  shift: number,
): Map<string, string[]> {
  const router = new Router({
    seed: 1,
    profiles: { [profile]: loadProfile(profile).spec },
    defaultProfile: profile,
    index: new DualIndex(),
    blockTokens: BLOCK_TOKENS,
    staleAfterMicros: 5_000_000,
  });
  for (const id of endpoints) {
    const endpoint = { id, models: [], labels: {}, kvCapacityTokens, concurrencyMax: undefined };
    router.accept({ kind: "endpoint-joined", at: 0, endpoint });
  }
  const asked = new Map(served.map((one) => [one.arrival.id, one]));
  const best = new Map<string, string[]>();
  for (const input of inputsOf(served, scraped, shift)) {
    if (input.kind !== "request-arrived") {
      router.accept(input);
      continue;
    }
    const decision = router.accept(input, asked.get(input.request.id)!.endpoint);
    const { totals, candidates } = decision.breakdown;
    const highest = Math.max(...totals);
    const top = candidates.filter((_, i) => (totals[i] ?? 0) > highest - 1e-9);
    best.set(
      input.request.id,
      top.map(({ endpoint }) => endpoint),
    );
  }
  return best;
}

function inputsOf(served: readonly Served[], scraped: readonly Scraped[], shift: number): Input[] {
  const inputs: Input[] = [];
  const pages = new Map<string, Scraped[]>();
  for (const one of scraped) pages.set(one.endpoint, [...(pages.get(one.endpoint) ?? []), one]);
  for (const all of pages.values()) {
    for (const [i, { at, endpoint }] of all.entries()) {
      const { load } = all[Math.min(all.length - 1, Math.max(0, i - shift))]!;
      inputs.push({ kind: "load-observed", at, endpoint, load });
    }
  }
  for (const { arrival, sentAt, endedAt, cachedTokens } of served) {
    const { id, tokens } = arrival;
    inputs.push({ kind: "request-arrived", at: sentAt, request: requestOf(arrival) });
    const counts = { promptTokens: tokens.length, cachedTokens, outputTokens: 1 };
    inputs.push({ kind: "request-finished", at: endedAt, requestId: id, outcome: "ok", ...counts });
  }
  return inputs.toSorted((a, b) => a.at - b.at);
}

function requestOf({ id, tokens, blockIds }: Arrival): Extract<Input, { kind: "request-arrived" }>["request"] {
  const hashes = new Int32Array(2 * blockIds.length);
  for (let i = 0; i < blockIds.length; i++) hashes.set([Math.imul(blockIds[i]!, 0x9e3779b1), blockIds[i]!], 2 * i);
  return {
    id,
    model: "tiny",
    tenant: "",
    session: "",
    sloClass: "",
    priority: 0,
    promptTokens: tokens.length,
    promptTokensExact: true,
    outputTokensMax: undefined,
    sequences: 1,
    blocks: { hashes, length: blockIds.length, blockTokens: BLOCK_TOKENS },
    profile: "",
  };
}
