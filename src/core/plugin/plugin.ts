import { type ParameterTable, type ParameterValues, resolveParameters } from "./parameter.ts";
import type { ParameterValue } from "./spec.ts";

/** A signal that a plugin reads, for `profiles` and for telling what a missing scrape affects. */
export type Signal =
  | "prefix-index"
  | "engine-caches"
  | "ledger"
  | "scrape:load"
  | "scrape:kv"
  | "scrape:latency"
  | "scrape:lora"
  | "scrape:power"
  | "observed-latency"
  | "usage"
  | "labels"
  | "session"
  | "tenant"
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
