import type { StepTimes } from "#core/endpoint/step-times.ts";
import type { Target } from "../endpoints/target.ts";

/** One server of a fixed list. */
export interface StaticServer {
  readonly url: string;
  /** Name of its endpoint; the URL where undefined. */
  readonly id?: string | undefined;
  readonly labels?: Readonly<Record<string, string>> | undefined;
  readonly apiKey?: string | undefined;
  /** Above 1, each rank is an endpoint of its own. */
  readonly dataParallelRanks?: number | undefined;
  readonly kvCapacityTokens?: number | undefined;
  readonly concurrencyMax?: number | undefined;
  readonly stepTimes?: StepTimes | undefined;
  /** It is to get no new requests. */
  readonly cordoned?: boolean | undefined;
}

/**
 * The targets of a fixed list: one a server, or `ID#RANK` for each of its ranks. Throws an Error that names the entry
 * when two endpoints would have one id.
 */
export function staticTargets(servers: readonly StaticServer[]): Target[] {
  const targets = servers.flatMap(serverTargets);
  const seen = new Set<string>();
  for (const { id } of targets) {
    if (seen.has(id)) throw new Error(`endpoints: ${id} is listed twice; give one of them another id`);
    seen.add(id);
  }
  return targets;
}

/** The targets of one server. */
export function serverTargets(server: StaticServer): Target[] {
  const url = new URL(server.url).origin;
  const id = server.id ?? url;
  const ranks = server.dataParallelRanks ?? 1;
  const target = (rank: number | undefined): Target => ({
    id: rank === undefined ? id : `${id}#${rank}`,
    url,
    dataParallelRank: rank,
    apiKey: server.apiKey,
    labels: server.labels ?? {},
    cordoned: server.cordoned ?? false,
    kvCapacityTokens: server.kvCapacityTokens,
    concurrencyMax: server.concurrencyMax,
    ...(server.stepTimes && { stepTimes: server.stepTimes }),
  });
  return ranks === 1 ? [target(undefined)] : Array.from({ length: ranks }, (_, rank) => target(rank));
}
