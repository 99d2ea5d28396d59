import { nameHash } from "#core/base/random.ts";
import type { Routed } from "#core/input/decision.ts";
import { type Input, isAsking } from "#core/input/input.ts";
import type { ProfileSpec } from "#core/plugin/spec.ts";
import { DualIndex } from "#core/prefix/dual-index.ts";
import { buildProfile } from "#core/profile/build-profile.ts";
import type { Profile } from "#core/profile/profile.ts";
import type { Noted } from "#core/request/noted.ts";
import type { RouteRequest } from "#core/request/request.ts";
import { type DecisionView, Router } from "#core/router.ts";
import { ExplainedShare } from "./explained-share.ts";
import { type Chances, chanceOf, chancesOf } from "./chances.ts";
import type { DecidedRun } from "./decided-run.ts";
import { type GaugeReading, readSo } from "./gauge-reading.ts";
import type { TriedPolicy } from "./neighbours.ts";
import { TieOrder } from "./tie-order.ts";

/** How a policy fares on the decisions that it is fitted to, and on those after them. */
export interface Halves {
  readonly fitted: ExplainedShare;
  readonly heldOut: ExplainedShare;
}

/** A decision as a policy saw it. */
export interface ComparedDecision {
  readonly view: DecisionView;
  /** Where the chosen endpoint is in it. */
  readonly chosen: number;
  readonly chances: Chances;
  readonly isHeldOut: boolean;
}

/** What a walk saw of the decisions. */
export interface WalkCounts {
  /** ComparedDecision with what the policies would have done. */
  compared: number;
  /** One endpoint alone could serve it. */
  only: number;
  /** It went to an endpoint that the trace does not have, or that by its inputs could not serve it. */
  unexpected: number;
}

/** All policies are this one to their plugins, so that each learns of every decision as of its own. */
const NAME = "reproduced";
const READS_SESSIONS: ProfileSpec = {
  filters: [{ plugin: "session-pin", parameters: {} }],
  scorers: [],
  picker: { plugin: "max-score", parameters: {} },
};

/**
 * Decides a run again under each policy, every request being sent where it really went: what a policy would have
 * chosen is compared, and never followed. So each decision is judged beside the state that there was, whatever a policy
 * would have made of the ones before it.
 */
export function walk(
  run: DecidedRun,
  tried: readonly Pick<TriedPolicy, "spec" | "inOrder">[],
  reading: GaugeReading,
  onCompared?: (compared: ComparedDecision, place: number) => void,
): { readonly halves: readonly Halves[]; readonly counts: WalkCounts } {
  const policies = tried.map((one) => new WalkedPolicy(one));
  const counts: WalkCounts = { compared: 0, only: 0, unexpected: 0 };
  const requests = new Map<string, RouteRequest>();
  const half = Math.ceil(run.decisions / 2);
  let place = 0;
  let judged: { readonly endpoint: string; readonly isHeldOut: boolean } | undefined;
  let arrived: RouteRequest | undefined;
  const router = routerFor(run, reading, (seen) => {
    arrived = seen.request;
    requests.set(seen.request.id, seen.request);
    const asked = judged;
    if (asked === undefined) return;
    const chosen = seen.ids.indexOf(asked.endpoint);
    const among = seen.ineligible.reduce((sum, why) => sum + (why === 0 ? 1 : 0), 0);
    if (chosen < 0 || seen.ineligible[chosen] !== 0) counts.unexpected++;
    else if (among < 2) counts.only++;
    else {
      counts.compared++;
      policies.forEach((policy, i) => {
        const chances = policy.compare(seen, chosen, among, asked.isHeldOut);
        onCompared?.({ view: seen, chosen, chances, isHeldOut: asked.isHeldOut }, i);
      });
    }
  });
  for (const { input, endpoint, isJudged } of readSo(run.inputs, reading)) {
    judged = isJudged && endpoint !== undefined ? { endpoint, isHeldOut: place >= half } : undefined;
    if (isJudged) place++;
    arrived = undefined;
    const decision = isAsking(input) ? router.accept(input, endpoint) : router.accept(input);
    const request = "requestId" in input ? requests.get(input.requestId) : arrived;
    if (input.kind === "request-finished") requests.delete(input.requestId);
    const made = decision?.kind === "routed" ? asAnyPolicys(decision) : undefined;
    for (const policy of policies) policy.observe(input, made, request);
  }
  return { halves: policies.map(({ halves }) => halves), counts };
}

/** A router as the trace's was, by a policy that is never asked. */
function routerFor({ header }: DecidedRun, reading: GaugeReading, sees: (view: DecisionView) => void): Router {
  const { blockTokens, staleAfterMicros, hostMemory, breaker, endpointRules, seed } = header.router;
  const router = new Router({
    seed,
    blockTokens,
    staleAfterMicros: Math.max(staleAfterMicros, 2 * reading.everyMicros),
    hostMemory,
    endpointRules,
    ...(breaker && { breaker }),
    index: new DualIndex(),
    profiles: { [NAME]: READS_SESSIONS },
    defaultProfile: NAME,
    keepsBreakdowns: false,
    sees,
  });
  for (const endpoint of header.endpoints) router.accept({ kind: "endpoint-joined", at: 0, endpoint });
  return router;
}

/** One policy on its way through a run. */
class WalkedPolicy {
  readonly #spec: ProfileSpec;
  readonly #profile: Profile;
  readonly #order: TieOrder | undefined;
  /** What its plugins learn of the decision under way. */
  #noted: Noted | undefined;
  readonly halves: Halves = { fitted: new ExplainedShare(), heldOut: new ExplainedShare() };

  constructor({ spec, inOrder }: Pick<TriedPolicy, "spec" | "inOrder">) {
    this.#spec = spec;
    this.#order = inOrder === true ? new TieOrder() : undefined;
    this.#profile = buildProfile(NAME, spec, false);
  }

  compare(view: DecisionView, chosen: number, among: number, isHeldOut: boolean): Chances {
    const alike = chancesOf(this.#profile, this.#spec, view, nameHash(view.request.id));
    const chances = this.#order?.first(alike, view.ids) ?? alike;
    // What is judged by is not learned from.
    if (!isHeldOut) this.#order?.learn(alike, view.ids, chosen);
    const { chance, squares } = chanceOf(chances, chosen);
    this.#noted = this.#profile.noted(view.states[chosen]!);
    this.halves[isHeldOut ? "heldOut" : "fitted"].add(among, chance, squares);
    return chances;
  }

  /** `decision`: without what was noted of it. */
  observe(input: Input, decision: Routed | undefined, request: RouteRequest | undefined): void {
    if (decision === undefined && !this.#profile.watches) return;
    this.#profile.observe(input, decision && this.#noted ? { ...decision, noted: this.#noted } : decision, request);
    this.#noted = undefined;
  }
}

/** The decision as if the policies had made it, but for what their plugins note. */
function asAnyPolicys(decision: Routed): Routed {
  const { noted: _ofAnother, ...made } = decision;
  return { ...made, profile: NAME };
}
