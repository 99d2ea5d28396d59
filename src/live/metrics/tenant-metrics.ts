import type { Registry } from "prom-client";
import type { RequestSummary } from "../log/request-summary.ts";
import { type CounterLabel, CounterTable } from "./metric-counter.ts";
import { LabelSlots } from "./metric-labels.ts";

const TENANTS_MAX_DEFAULT = 64;
/** Outcomes and reasons are closed sets; this bounds a mistake. */
const CLOSED_SET_MAX = 128;

/**
 * What each tenant asked for and got. Tenants are names that keys are bound to, or keyed digests; those beyond the bound
 * share one series, first come, first served. A request that was refused before anybody knew whose it is has none.
 */
export class TenantMetrics {
  readonly slots: LabelSlots;
  readonly #outcomes = new LabelSlots(CLOSED_SET_MAX);
  readonly #reasons = new LabelSlots(CLOSED_SET_MAX);
  readonly #requests: CounterTable;
  readonly #refusals: CounterTable;
  readonly #promptTokens: CounterTable;
  readonly #cachedTokens: CounterTable;
  readonly #outputTokens: CounterTable;

  constructor(registry: Registry, tenantsMax: number = TENANTS_MAX_DEFAULT) {
    this.slots = new LabelSlots(tenantsMax);
    const tenant = { name: "tenant", slots: this.slots };
    const counter = (name: string, help: string, ...labels: readonly CounterLabel[]) =>
      new CounterTable(registry, `gnomon_tenant_${name}`, help, [tenant, ...labels]);
    const outcome = { name: "outcome", slots: this.#outcomes };
    const reason = { name: "reason", slots: this.#reasons };
    this.#requests = counter("requests_total", "Finished requests of a tenant.", outcome);
    this.#refusals = counter(
      "refusals_total",
      "Requests of a tenant that were sent to no endpoint, by reason.",
      reason,
    );
    this.#promptTokens = counter("prompt_tokens_total", "Prompt tokens of a tenant, as counted by the engines.");
    this.#cachedTokens = counter(
      "cached_tokens_total",
      "Prompt tokens of a tenant found in caches, as counted by the engines.",
    );
    this.#outputTokens = counter("output_tokens_total", "Tokens generated for a tenant.");
  }

  finished(summary: RequestSummary): void {
    const { tenant, outcome, attempts, reason, promptTokens, cachedTokens, outputTokens } = summary;
    if (tenant === "") return;
    const slot = this.slots.slot(tenant);
    this.#requests.add(1, slot, this.#outcomes.slot(outcome));
    if (outcome === "refused" && attempts === 0) this.#refusals.add(1, slot, this.#reasons.slot(reason));
    if (promptTokens !== undefined) this.#promptTokens.add(promptTokens, slot);
    if (cachedTokens !== undefined) this.#cachedTokens.add(cachedTokens, slot);
    if (outputTokens !== undefined) this.#outputTokens.add(outputTokens, slot);
  }
}
