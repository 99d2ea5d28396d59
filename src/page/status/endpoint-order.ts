import type { EndpointCard } from "./overview.ts";
import type { EndpointSort } from "./page-state.ts";
import { type EndpointTrouble, troubleOf } from "./trouble.ts";

export interface Ranked {
  readonly endpoint: EndpointCard;
  readonly trouble: EndpointTrouble;
}

/** What rows are ordered by, the largest first; names go the other way. */
const RANKS: Readonly<Record<Exclude<EndpointSort, "name">, (one: Ranked) => number>> = {
  trouble: ({ trouble }) => trouble.severity,
  load: ({ endpoint }) => endpoint.known?.load ?? -1,
  waiting: ({ endpoint }) => endpoint.known?.waiting ?? -1,
  kv: ({ endpoint }) => endpoint.known?.kvUtilization ?? -1,
  hits: ({ endpoint }) => endpoint.known?.hitRatio ?? -1,
};

/** Endpoints with their troubles; those of the same rank by name. */
export function ordered(endpoints: readonly EndpointCard[], sort: EndpointSort): Ranked[] {
  const ranked = endpoints.map((endpoint) => ({ endpoint, trouble: troubleOf(endpoint) }));
  const byName = (a: Ranked, b: Ranked) => (a.endpoint.id < b.endpoint.id ? -1 : 1);
  if (sort === "name") return ranked.sort(byName);
  const rank = RANKS[sort];
  return ranked.sort((a, b) => rank(b) - rank(a) || byName(a, b));
}

/** Those whose name, a model or a trouble contains the text. */
export function matching(ranked: readonly Ranked[], filter: string): readonly Ranked[] {
  const wanted = filter.trim().toLowerCase();
  if (wanted === "") return ranked;
  return ranked.filter(({ endpoint: { id, models, state }, trouble }) =>
    [id, state, ...models, ...trouble.signs].some((text) => text.toLowerCase().includes(wanted)),
  );
}
