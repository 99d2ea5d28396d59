import { collectDefaultMetrics, Registry } from "prom-client";
import type { Decision } from "#core/input/decision.ts";
import type { Fault } from "#core/endpoint/fault.ts";
import type { Input } from "#core/input/input.ts";
import { FORECAST_UNSURE } from "#core/scorer/predicted-latency.ts";
import { MICROS_PER_SECOND, type Micros } from "#core/base/units.ts";
import type { RequestObserver } from "../log/request-observer.ts";
import type { DirectoryListener, EndpointEntry } from "../endpoints/endpoint-directory.ts";
import type { IntakeListener } from "../base/intake.ts";
import { type CounterLabel, CounterTable, LabelSlots, HistogramTable } from "./labelled-series.ts";
import type { PlacedRequests } from "../keeper/unsure-forecasts.ts";
import { NO_LABELS, registerFamily } from "./metric-family.ts";
import { ENDPOINTS_MAX_DEFAULT, registerState, type StateSources } from "./metric-state.ts";
import { registerLoopDelay } from "./metric-loop.ts";
import { renderPage } from "./render-page.ts";
import { PrefillMetrics } from "./prefill-metrics.ts";
import type { RequestSummary } from "../log/request-summary.ts";
import type { Endpoint, EndpointId } from "#core/endpoint/endpoint.ts";
import { RecentRequests } from "#core/base/request-table.ts";
import { type Slo, type SloResult, sloResults } from "#core/request/slo.ts";

export interface MetricsOptions extends StateSources {
  /** Models with series of their own; the others share "other". */
  readonly modelsMax?: number;
  /** Tenants with series of their own; the others share "other". */
  readonly tenantsMax?: number;
  /** Of this process: CPU, memory, event loop, garbage collection. */
  readonly processMetrics?: boolean;
}

/** vLLM's buckets, so that its histograms and ours can be laid over each other. Seconds. */
const TTFT_BOUNDS = [
  0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80, 160, 640, 2560,
];
const TPOT_BOUNDS = [0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80];
const E2E_BOUNDS = [0.3, 0.5, 0.8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 40, 50, 60, 120, 240, 480, 960, 1920, 7680];
const QUEUE_BOUNDS = [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900];
const DECISION_BOUNDS = [5e-6, 1e-5, 2e-5, 3e-5, 5e-5, 7.5e-5, 1e-4, 2e-4, 5e-4, 1e-3, 2e-3, 5e-3, 1e-2, 0.05, 0.1];

/** Gauges with a counter's name; each is the sum of a family that stays. */
const MISNAMED = ["nodejs_active_resources_total", "nodejs_active_handles_total", "nodejs_active_requests_total"];

/** Until prom-client looks at the event loop: longer than a process lives. */
const NEVER_MILLIS = 2 ** 40;

/** Routes, outcomes, faults and reasons are closed sets; this bounds a mistake, not a workload. */
const CLOSED_SET_MAX = 128;
const STATUSES_MAX = 64;

/**
 * The gateway's numbers for Prometheus. What happens per request only adds to arrays; lines are made when the page is
 * asked for. Labels come from closed sets or are bounded: a model or endpoint beyond the bound is "other", and counted.
 */
export class GatewayMetrics implements IntakeListener, RequestObserver, DirectoryListener {
  readonly #registry = new Registry();
  readonly #routes = new LabelSlots(CLOSED_SET_MAX);
  readonly #statuses = new LabelSlots(STATUSES_MAX);
  readonly #outcomes = new LabelSlots(CLOSED_SET_MAX);
  readonly #reasons = new LabelSlots(CLOSED_SET_MAX);
  readonly #refusals = new LabelSlots(CLOSED_SET_MAX);
  readonly #faults = new LabelSlots(CLOSED_SET_MAX);
  readonly #endpoints: LabelSlots;
  readonly #models: ModelLabels;
  readonly #requests: CounterTable;
  readonly #decisions: CounterTable;
  readonly #rejections: CounterTable;
  readonly #retries: CounterTable;
  readonly #fallbacks: CounterTable;
  readonly #promptTokens: CounterTable;
  readonly #cachedTokens: CounterTable;
  readonly #outputTokens: CounterTable;
  readonly #hitTokens: CounterTable;
  readonly #decisionSeconds: HistogramTable;
  readonly #ttft: HistogramTable;
  readonly #tpot: HistogramTable;
  readonly #e2e: HistogramTable;
  readonly #queued = new HistogramTable(
    this.#registry,
    { name: "gnomon_queue_seconds", help: "Time requests spent in the gateway's queue.", bounds: QUEUE_BOUNDS },
    () => NO_LABELS,
  );
  readonly #tenants: TenantMetrics;
  readonly #prefills = new PrefillMetrics(this.#registry, TTFT_BOUNDS);
  readonly #slo = new SloMetrics(this.#registry);
  #ledgerDecisions = 0;
  #placed = 0;
  #unsure = 0;
  #clampedScores = 0;

  constructor(options: MetricsOptions) {
    const registry = this.#registry;
    this.#models = new ModelLabels(options.modelsMax ?? 64);
    this.#endpoints = new LabelSlots(options.endpointsMax ?? ENDPOINTS_MAX_DEFAULT);
    const route = { name: "route", slots: this.#routes };
    const model = { name: "model", slots: this.#models.slots };
    const status = { name: "status", slots: this.#statuses };
    const outcome = { name: "outcome", slots: this.#outcomes };
    const reason = { name: "reason", slots: this.#reasons };
    const endpoint = { name: "endpoint", slots: this.#endpoints };
    const refusal = { name: "reason", slots: this.#refusals };
    const fault = { name: "fault", slots: this.#faults };
    const counter = (name: string, help: string, ...labels: readonly CounterLabel[]) =>
      new CounterTable(registry, `gnomon_${name}`, help, labels);

    const requestLabels = [route, model, status, outcome];
    this.#requests = counter("requests_total", "Finished inference requests; status 0: no answer.", ...requestLabels);
    this.#decisions = counter("decisions_total", "Requests routed, retries included.", endpoint, reason);
    this.#rejections = counter("rejections_total", "Requests for which no endpoint was found.", refusal);
    this.#retries = counter("retries_total", "Retries on another endpoint, by the fault that caused them.", fault);
    this.#fallbacks = counter("tokenizer_fallbacks_total", "Prompts whose tokens had to be estimated.", model);
    this.#promptTokens = counter("prompt_tokens_total", "Prompt tokens, as counted by the engines.", model);
    this.#cachedTokens = counter(
      "cached_tokens_total",
      "Prompt tokens found in caches, as counted by the engines.",
      model,
    );
    this.#outputTokens = counter("output_tokens_total", "Generated tokens.", model);
    this.#hitTokens = counter("prefix_hit_tokens_total", "Prompt tokens that the router expected to be cached.", model);
    this.#decisionSeconds = new HistogramTable(
      registry,
      { name: "gnomon_decision_seconds", help: "Time to choose an endpoint.", bounds: DECISION_BOUNDS },
      () => NO_LABELS,
    );
    const byModel = (slot: number) => ({ model: this.#models.slots.name(slot) });
    this.#ttft = new HistogramTable(
      registry,
      {
        name: "gnomon_time_to_first_token_seconds",
        help: "From the decision to the first token, or to the last byte if not streamed.",
        bounds: TTFT_BOUNDS,
      },
      (slot) => ({ ...byModel(slot >>> 1), stream: slot % 2 === 1 ? "true" : "false" }),
    );
    this.#tpot = new HistogramTable(
      registry,
      {
        name: "gnomon_time_per_output_token_seconds",
        help: "Mean time per output token after a request's first.",
        bounds: TPOT_BOUNDS,
      },
      byModel,
    );
    this.#e2e = new HistogramTable(
      registry,
      {
        name: "gnomon_e2e_request_latency_seconds",
        help: "From the request read to the last byte of a complete answer.",
        bounds: E2E_BOUNDS,
      },
      byModel,
    );
    this.#tenants = new TenantMetrics(registry, options.tenantsMax);
    this.#registerTotals();
    registerState(registry, options);
    if (options.processMetrics ?? true) {
      collectDefaultMetrics({ register: registry, prefix: "gnomon_", eventLoopMonitoringPrecision: NEVER_MILLIS });
      registerLoopDelay(registry, "gnomon_");
      for (const name of MISNAMED) registry.removeSingleMetric(`gnomon_${name}`);
    }
  }

  get contentType(): string {
    return this.#registry.contentType;
  }

  /** Requests placed since the start, and those of them that were placed without the forecast of their profile. */
  get placedRequests(): PlacedRequests {
    return { placed: this.#placed, unsure: this.#unsure };
  }

  /** The page, made in slices of the event loop. */
  render(): Promise<string> {
    return renderPage(this.#registry);
  }

  accepted(input: Input, decision: Decision | undefined, decisionMicros: number): void {
    // Most gateways have each request at one endpoint.
    const isShared = decision?.kind === "routed" && (decision.prefill ?? decision.colocated) !== undefined;
    if (isShared || this.#prefills.isUsed) this.#prefills.accepted(input, decision);
    this.#slo.accepted(input, decision);
    if (decision !== undefined) this.#decided(decision, decisionMicros);
    else this.#models.observe(input);
  }

  finished(summary: RequestSummary): void {
    const { status, outcome, ttftMicros, tpotMicros, promptTokens, cachedTokens, outputTokens, hitTokens } = summary;
    const model = this.#models.slot(summary.model, outcome === "ok");
    const route = this.#routes.slot(summary.route);
    this.#requests.add(1, route, model, this.#statuses.slot(statusText(status)), this.#outcomes.slot(outcome));
    if (ttftMicros !== undefined) {
      this.#ttft.observe(2 * model + (summary.stream ? 1 : 0), ttftMicros / MICROS_PER_SECOND);
    }
    if (tpotMicros !== undefined) this.#tpot.observe(model, tpotMicros / MICROS_PER_SECOND);
    if (summary.queuedMicros > 0) this.#queued.observe(0, summary.queuedMicros / MICROS_PER_SECOND);
    if (outcome === "ok") this.#e2e.observe(model, summary.e2eMicros / MICROS_PER_SECOND);
    if (promptTokens !== undefined) this.#promptTokens.add(promptTokens, model);
    if (cachedTokens !== undefined) this.#cachedTokens.add(cachedTokens, model);
    if (outputTokens !== undefined) this.#outputTokens.add(outputTokens, model);
    if (hitTokens > 0) this.#hitTokens.add(hitTokens, model);
    this.#tenants.finished(summary);
  }

  retried(fault: Fault): void {
    this.#retries.add(1, this.#faults.slot(fault));
  }

  tokenizerFellBack(model: string): void {
    this.#fallbacks.add(1, this.#models.slot(model, false));
  }

  joined(entry: EndpointEntry): void {
    this.#endpoints.slot(entry.id);
  }

  /** An endpoint that is gone takes its series with it, so that pods that come and go do not use up the labels. */
  left(entry: EndpointEntry): void {
    const slot = this.#endpoints.release(entry.id);
    if (slot !== undefined) this.#decisions.drop(0, slot);
  }

  #decided(decision: Decision, micros: number): void {
    this.#decisionSeconds.observe(0, micros / MICROS_PER_SECOND);
    this.#clampedScores += decision.breakdown.clamped;
    if (decision.kind === "rejected") {
      this.#rejections.add(1, this.#refusals.slot(decision.reason));
      return;
    }
    if (decision.kind === "queued") return;
    if (decision.usedLedger) this.#ledgerDecisions++;
    this.#placed++;
    if (decision.reason === FORECAST_UNSURE) this.#unsure++;
    const endpoint = this.#endpoints.known(decision.endpoint) ?? this.#endpoints.other();
    this.#decisions.add(1, endpoint, this.#reasons.slot(decision.reason));
  }

  #registerTotals(): void {
    const total = (name: string, help: string, value: () => number) =>
      registerFamily(this.#registry, {
        name: `gnomon_${name}`,
        help,
        type: "counter",
        rows: () => [{ value: value(), labels: NO_LABELS, sharedLabels: NO_LABELS }],
      });
    total(
      "ledger_decisions_total",
      "Decisions in which the router's own ledger replaced a missing or stale signal.",
      () => this.#ledgerDecisions,
    );
    total(
      "clamped_scores_total",
      "Scores outside [0, 1], which were clamped; each is a defect of a scorer.",
      () => this.#clampedScores,
    );
    const labels = {
      models: { label: "model" },
      endpoints: { label: "endpoint" },
      tenants: { label: "tenant" },
      classes: { label: "slo_class" },
    };
    registerFamily(this.#registry, {
      name: "gnomon_label_overflows_total",
      help: "Times a label value was counted under the shared series because there were too many values.",
      type: "counter",
      rows: () => [
        { value: this.#models.slots.overflows, labels: NO_LABELS, sharedLabels: labels.models },
        { value: this.#endpoints.overflows, labels: NO_LABELS, sharedLabels: labels.endpoints },
        { value: this.#tenants.slots.overflows, labels: NO_LABELS, sharedLabels: labels.tenants },
        { value: this.#slo.overflows, labels: NO_LABELS, sharedLabels: labels.classes },
      ],
    });
  }
}

/** Texts of the statuses that occur are few; the table keeps them from being made anew. */
const STATUS_TEXTS = new Map<number, string>();

function statusText(status: number): string {
  let text = STATUS_TEXTS.get(status);
  if (text === undefined) {
    text = String(status);
    if (STATUS_TEXTS.size < STATUSES_MAX) STATUS_TEXTS.set(status, text);
  }
  return text;
}

/**
 * Slots for models. Clients can name anything, so a name has series of its own only when some endpoint lists it, or,
 * where an endpoint lists nothing and serves any, once a request for it went well.
 */
class ModelLabels {
  readonly slots: LabelSlots;
  readonly #models = new Map<EndpointId, readonly string[]>();

  constructor(max: number) {
    this.slots = new LabelSlots(max);
  }

  observe(input: Input): void {
    if (input.kind === "endpoint-joined" || input.kind === "endpoint-changed") this.#learn(input.endpoint);
    else if (input.kind === "endpoint-left") this.#models.delete(input.endpoint);
  }

  slot(model: string, wentWell: boolean): number {
    return this.slots.known(model) ?? (this.#isServed(model, wentWell) ? this.slots.slot(model) : this.slots.other());
  }

  #learn({ id, models }: Endpoint): void {
    this.#models.set(id, models);
  }

  #isServed(model: string, wentWell: boolean): boolean {
    for (const models of this.#models.values()) {
      if (models.length === 0 ? wentWell : models.includes(model)) return true;
    }
    return false;
  }
}

const TENANTS_MAX_DEFAULT = 64;
/** Outcomes and reasons are closed sets; this bounds a mistake. */

/**
 * What each tenant asked for and got. Tenants are names that keys are bound to, or keyed digests; those beyond the bound
 * share one series, first come, first served. A request that was refused before anybody knew whose it is has none.
 */
class TenantMetrics {
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

/** Requests in flight whose targets are remembered; with more at once the oldest count for nothing. */
const REQUESTS_MAX = 65_536;
/** Clients name classes; further ones share "other". */
const CLASSES_MAX = 64;
/** Arms of all rollouts together, and those without one. */
const ARMS_MAX = 64;
const TARGETS_MAX = 8;

interface Promised {
  readonly slo: Slo;
  readonly sloClass: string;
  readonly sequences: number;
  readonly arrivedAt: Micros;
  arm: string;
  firstTokenAt: Micros | undefined;
}

/** Goodput: how many of the requests that are promised times got them, by class and by arm of a rollout. */
export class SloMetrics {
  readonly #classes = new LabelSlots(CLASSES_MAX);
  readonly #arms = new LabelSlots(ARMS_MAX);
  readonly #targets = new LabelSlots(TARGETS_MAX);
  readonly #results = new LabelSlots(TARGETS_MAX);
  readonly #requests: CounterTable;
  readonly #promised = new RecentRequests<Promised>(REQUESTS_MAX);

  constructor(registry: Registry) {
    this.#requests = new CounterTable(
      registry,
      "gnomon_slo_requests_total",
      "Finished requests that had latency targets, by the outcome of each target and of all together.",
      [
        { name: "slo_class", slots: this.#classes },
        { name: "arm", slots: this.#arms },
        { name: "target", slots: this.#targets },
        { name: "result", slots: this.#results },
      ],
    );
  }

  /** Classes that had to share the series of others. */
  get overflows(): number {
    return this.#classes.overflows;
  }

  accepted(input: Input, decision: Decision | undefined): void {
    if (input.kind === "request-arrived") {
      const { id, slo, sloClass, sequences } = input.request;
      if (slo === undefined) return;
      const arm = armOf(decision);
      this.#promised.set(id, { slo, sloClass, sequences, arrivedAt: input.at, arm, firstTokenAt: undefined });
      return;
    }
    // Most gateways promise nothing.
    if (this.#promised.size === 0) return;
    if (input.kind === "first-token") {
      const one = this.#promised.get(input.requestId);
      if (one !== undefined) one.firstTokenAt ??= input.at;
    } else if (input.kind === "request-finished") this.#finished(input);
  }

  #finished({ at, requestId, outcome, outputTokens }: Extract<Input, { kind: "request-finished" }>): void {
    const one = this.#promised.get(requestId);
    if (one === undefined) return;
    this.#promised.delete(requestId);
    const { slo, sloClass, sequences, arm, arrivedAt, firstTokenAt } = one;
    const end = { outcome, arrivedAt, firstTokenAt, endedAt: at, outputTokens, sequences };
    const results = sloResults(slo, end);
    if (results === undefined) return;
    for (const [target, result] of Object.entries(results) as [string, SloResult][])
      this.#requests.add(
        1,
        this.#classes.slot(sloClass),
        this.#arms.slot(arm),
        this.#targets.slot(target),
        this.#results.slot(result),
      );
  }
}

/** "rollout/arm"; "" outside of a rollout. */
function armOf(decision: Decision | undefined): string {
  return decision?.rollout === undefined ? "" : `${decision.rollout.name}/${decision.rollout.arm}`;
}
