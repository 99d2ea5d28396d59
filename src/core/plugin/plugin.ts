import { type ParameterTable, type ParameterValues, resolveParameters } from "./parameter.ts";
import type { ParameterValue } from "./spec.ts";

/**
 * A signal that a plugin reads: shown by `gnomon profiles`, and what a missing scrape affects. Contract tests refuse it
 * properties of the snapshot, the endpoint and the request that belong to signals which it has not declared.
 */
export type Signal =
  /** hitBlocks, hitTokens: what the endpoint is believed to hold of the prompt. */
  | "prefix-index"
  /** cachedBlocks: what its cache really holds, which only a simulation can look up. */
  | "engine-caches"
  /** What this router and its peers sent there: requests and tokens in flight. */
  | "ledger"
  /** Of the last scrape: requests running and waiting; */
  | "scrape:load"
  /** use of the KV cache, hit ratio; */
  | "scrape:kv"
  /** TTFT, TPOT and tokens a second as the engine reports them; */
  | "scrape:latency"
  /** adapters running and waiting; */
  | "scrape:lora"
  /** power and activity of its GPUs. */
  | "scrape:power"
  /** ttftMicros, tpotMicros: as this router saw them. */
  | "observed-latency"
  /** Token counts of answers, by inputs (`observe`). */
  | "usage"
  /** The endpoint's labels. */
  | "labels"
  /** The request's session, and its tenant. */
  | "session"
  | "tenant"
  /** Nothing but facts that need no signal. */
  | "none";

/** A plugin as the catalog holds it. */
export interface Plugin<T> {
  /** One sentence for `profiles`. */
  readonly summary: string;
  /** Every signal that it reads under some choice of its parameters. */
  readonly reads: readonly Signal[];
  /** Where the formula comes from. */
  readonly source: string;
  readonly parameters: ParameterTable;
  /** The signals that it reads under these parameters, a subset of `reads`. */
  readsWith(given: Readonly<Record<string, ParameterValue>>): readonly Signal[];
  create(name: string, given: Readonly<Record<string, ParameterValue>>): T;
}

/** What a plugin is written as: its parameters arrive with the defaults filled in. */
export interface Definition<T, P extends ParameterTable> {
  readonly summary: string;
  readonly reads: readonly Signal[];
  readonly source: string;
  readonly parameters: P;
  /** Where parameters decide what is read; otherwise all of `reads` is. */
  readsWith?(parameters: ParameterValues<P>): readonly Signal[];
  create(name: string, parameters: ParameterValues<P>): T;
}

/** A plugin whose parameters are typed by their own table. */
export function plugin<T, P extends ParameterTable>(definition: Definition<T, P>): Plugin<T> {
  return {
    ...definition,
    readsWith: (given) => definition.readsWith?.(resolveParameters(definition.parameters, given)) ?? definition.reads,
    create: (name, given) => definition.create(name, resolveParameters(definition.parameters, given)),
  };
}
