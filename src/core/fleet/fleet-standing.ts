import { INELIGIBLE } from "../endpoint/eligibility.ts";
import type { EndpointRules, OutlierReason, OutlierRules } from "../endpoint/endpoint-rules.ts";
import type { EndpointState } from "../endpoint/endpoint-state.ts";
import { mix32, nameHash } from "../base/random.ts";
import type { Micros } from "../base/units.ts";

/** Why no endpoint may serve a request at all. */
export type NobodyReason = "no-endpoint" | "unknown-model" | "asleep";

/** Endpoints with enough requests beside one, for it to be known as slow. */
const OTHERS_MIN = 2;

const KINDS = Math.max(...Object.values(INELIGIBLE)) + 1;

/**
 * How the endpoints stand to one another: who fares worse than the others and is left alone for a while, who is let back
 * since too few would be left, and who is new and gets less than its share. All of it follows from the router's inputs.
 */
export class FleetStanding {
  readonly #rules: EndpointRules | undefined;
  #nextLookAt: Micros | undefined;
  /** Endpoints by their verdict, in the decision under way. */
  readonly #count = new Uint16Array(KINDS);

  constructor(rules: EndpointRules | undefined) {
    this.#rules = rules;
  }

  /** What share of the requests that it would get goes to an endpoint, in (0, 1]. */
  shareOf(at: Micros, state: EndpointState): number {
    const slow = this.#rules?.slowStart;
    if (slow === undefined) return 1;
    const elapsed = Math.max(0, at - state.beganAt);
    if (elapsed >= slow.windowMicros) return 1;
    return slow.shareMin + (1 - slow.shareMin) * (elapsed / slow.windowMicros);
  }

  /** Judges what came since the last look, once its time has come. */
  look(at: Micros, states: readonly EndpointState[]): void {
    const rules = this.#rules?.outliers;
    if (rules === undefined) return;
    this.#nextLookAt ??= at + rules.intervalMicros;
    if (at < this.#nextLookAt) return;
    this.#nextLookAt = at + rules.intervalMicros;
    const found = states.map((state) => (state.outlier.reason(at) === "" ? outlierBy(state, states, rules) : ""));
    states.forEach((state, i) => {
      const reason = found[i]!;
      state.outlier.begin(reason !== "" || state.outlier.reason(at) !== "", rules.requestsMin);
      if (reason === "") return;
      state.began(state.outlier.eject(at, reason, nameHash(state.id), rules));
      state.ejections[reason]++;
    });
  }

  /**
   * Lets back who was marked by a verdict, where too few would be left: those ejected for how they fare, those whose checks
   * fail, and where nobody is left at all, those with an open breaker, and those that hang: one that may fail is better
   * than none. Returns why nobody is left even so.
   */
  letBack(ineligible: Uint8Array): NobodyReason | undefined {
    const count = this.#count.fill(0);
    for (let i = 0; i < ineligible.length; i++) count[ineligible[i]!]!++;
    const { outlier, unhealthy, breaker, hung } = INELIGIBLE;
    const soft = count[outlier]! + count[unhealthy]!;
    const firm = count[breaker]! + count[hung]!;
    let allowed = count[0]!;
    const floor = soft === 0 ? 0 : Math.max(1, Math.ceil((this.#rules?.floorShare ?? 0) * (allowed + soft + firm)));
    for (const verdict of [outlier, unhealthy]) if (allowed < floor) allowed += allow(ineligible, verdict);
    if (allowed > 0) return undefined;
    if (firm > 0) return void allow(ineligible, count[breaker]! > 0 ? breaker : hung);
    // A sleeping engine answers nothing until it is woken: it is never better than none.
    if (count[INELIGIBLE.asleep]! > 0) return "asleep";
    const nobodyServes = ineligible.length > 0 && count[INELIGIBLE.unknownModel] === ineligible.length;
    return nobodyServes ? "unknown-model" : "no-endpoint";
  }

  /**
   * Keeps some requests from endpoints that began lately. An endpoint with half the share of the one that has most is a
   * candidate for every second request, whatever the policy thinks of it then; which, its id and the request's name.
   */
  hold(at: Micros, requestId: string, states: readonly EndpointState[], ineligible: Uint8Array): void {
    const slow = this.#rules?.slowStart;
    if (slow === undefined || !states.some(({ beganAt }) => at - beganAt < slow.windowMicros)) return;
    let most = 0;
    for (let i = 0; i < states.length; i++)
      if (ineligible[i] === 0) most = Math.max(most, this.shareOf(at, states[i]!));
    const request = nameHash(requestId);
    for (let i = 0; i < states.length; i++) {
      const share = ineligible[i] === 0 ? this.shareOf(at, states[i]!) : most;
      if (share < most && mix32(request ^ nameHash(states[i]!.id)) / 2 ** 32 >= share / most)
        ineligible[i] = INELIGIBLE.slowStart;
    }
  }
}

/** How many that were. */
function allow(ineligible: Uint8Array, verdict: number): number {
  let allowed = 0;
  for (let i = 0; i < ineligible.length; i++) {
    if (ineligible[i] !== verdict) continue;
    ineligible[i] = 0;
    allowed++;
  }
  return allowed;
}

function outlierBy(state: EndpointState, states: readonly EndpointState[], rules: OutlierRules): "" | OutlierReason {
  const { requestsMin, failureShare, slowFactor } = rules;
  const others = states.filter((other) => other !== state);
  const failing = state.outlier.failureShare(requestsMin);
  if (failureShare > 0 && failing !== undefined && failing >= failureShare) {
    const usual = medianOf(others.map(({ outlier }) => outlier.failureShare(requestsMin)));
    if ((usual ?? 0) <= failing / 2) return "failures";
  }
  const tpot = state.outlier.tpotMicros(requestsMin);
  if (slowFactor === 0 || tpot === undefined) return "";
  const known = others.map(({ outlier }) => outlier.tpotMicros(requestsMin)).filter((one) => one !== undefined);
  const usual = known.length < OTHERS_MIN ? undefined : medianOf(known);
  return usual !== undefined && tpot >= slowFactor * usual ? "slow" : "";
}

/** The lower one of an even number; undefined of nothing. */
function medianOf(values: readonly (number | undefined)[]): number | undefined {
  const sorted = Float64Array.from(values.filter((value) => value !== undefined)).sort();
  return sorted[(sorted.length - 1) >> 1];
}
