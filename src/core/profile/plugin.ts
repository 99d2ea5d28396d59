import type { Filter } from "../filter/filter.ts";
import type { Picker } from "../picker/picker.ts";
import type { Scorer } from "../scorer/scorer.ts";
import { type ParameterTable, type ParameterValues, resolveParameters } from "./parameter.ts";
import type { ParameterValue } from "./spec.ts";

/** A signal that a plugin reads, for `profiles` and for telling what a missing scrape affects. */
export type Signal =
  | "prefix-index"
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
  readonly reads: readonly Signal[];
  /** Where the formula comes from. */
  readonly source: string;
  readonly parameters: ParameterTable;
  create(name: string, given: Readonly<Record<string, ParameterValue>>): T;
}

interface Definition<T, P extends ParameterTable> {
  readonly summary: string;
  readonly reads: readonly Signal[];
  readonly source: string;
  readonly parameters: P;
  create(name: string, parameters: ParameterValues<P>): T;
}

export function scorerPlugin<const P extends ParameterTable>(definition: Definition<Scorer, P>): Plugin<Scorer> {
  return plugin(definition);
}

export function filterPlugin<const P extends ParameterTable>(definition: Definition<Filter, P>): Plugin<Filter> {
  return plugin(definition);
}

export function pickerPlugin<const P extends ParameterTable>(definition: Definition<Picker, P>): Plugin<Picker> {
  return plugin(definition);
}

function plugin<T, P extends ParameterTable>(definition: Definition<T, P>): Plugin<T> {
  return {
    ...definition,
    create: (name, given) => definition.create(name, resolveParameters(definition.parameters, given)),
  };
}
