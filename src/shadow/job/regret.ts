import type { Routed } from "#core/input/decision.ts";
import type { EndpointId } from "#core/endpoint/endpoint.ts";
import { nameHash, randomFor } from "#core/base/random.ts";
import type { Micros } from "#core/base/units.ts";
import { rankedCandidates } from "#sim/result/decision-trace.ts";
import type { WorkloadRequest } from "#trace/workload-request.ts";
import { shiftedEvent } from "../recorded/shifted-event.ts";
import {
  type Candidate,
  type CandidateOutcome,
  requestId,
  runCandidate,
  type Setting,
  settingOf,
} from "../candidate/candidate.ts";

/** Requests before the decision, so that queues and caches are about as they were, and after it, in which it may matter. */
const WARM_UP_REQUESTS = 1_000;
const WINDOW_REQUESTS = 200;
/** Requests that one decision's question simulates at most, per run: one as it was, one per alternative. */
export const REGRET_REQUESTS_MAX: number = WARM_UP_REQUESTS + WINDOW_REQUESTS + 1;
/** Endpoints of a decision that are reported. */
const CHOICES_REPORTED_MAX = 8;

/** A decision and the requests around it, as they came in the candidate's own run. */
export interface RegretQuestion {
  readonly candidate: Candidate;
  /** Endpoints to try instead: those that the policy liked best after the chosen one. */
  readonly alternatives: number;
  /** Place in the workload. */
  readonly request: number;
  /** Places in the workload by arrival, and those arrivals. */
  readonly around: Int32Array;
  readonly arrivalMicros: Float64Array;
}

/** One endpoint that the policy could have chosen. */
export interface ScoredChoice {
  readonly endpoint: EndpointId;
  readonly requestsInFlight: number;
  readonly hitTokens: number;
  readonly kvUtilization: number;
  /** By the policy's own measure. */
  readonly score: number;
  /** Its outcome; undefined where it was not tried. */
  readonly outcome: ChoiceOutcome | undefined;
}

export interface ChoiceOutcome {
  readonly ttftMicros: number;
  readonly e2eMicros: number;
  /** Requests after it whose end came at another time than with the choice that was made, and their mean change. */
  readonly affected: number;
  readonly affectedChangeMicros: number;
  /** Change of the sum of E2E over this request and all after it in the window. */
  readonly windowChangeMicros: number;
}

export interface DecisionRegret {
  readonly request: number;
  readonly promptTokens: number;
  readonly reason: string;
  readonly chosen: EndpointId;
  /** The chosen one first, then by score. */
  readonly choices: readonly ScoredChoice[];
  /** E2E that the request lost against the best alternative; 0 where none was better. */
  readonly regretMicros: number;
  /** The same of the window's sum: what all lost together. */
  readonly windowRegretMicros: number;
}

/** Decisions spread over a run, with what is around each of them. */
export function regretQuestions(
  candidate: Candidate,
  outcome: CandidateOutcome,
  decisions: number,
  alternatives: number,
  seed: number,
): RegretQuestion[] {
  const arrival = outcome.arrivalMicros;
  const order = Int32Array.from(arrival.keys())
    .filter((request) => !Number.isNaN(arrival[request]!))
    .sort((a, b) => arrival[a]! - arrival[b]! || a - b);
  const count = Math.min(decisions, order.length);
  const random = randomFor(seed, nameHash("regret"));
  return Array.from({ length: count }, (_, i) => {
    const place = Math.floor(((i + random.next()) * order.length) / count);
    const around = order.slice(Math.max(0, place - WARM_UP_REQUESTS), place + 1 + WINDOW_REQUESTS);
    const arrivalMicros = Float64Array.from(around, (request) => arrival[request]!);
    return { candidate, alternatives, request: order[place]!, around, arrivalMicros };
  });
}

/**
 * Regret by outcome: the requests around the decision are simulated as the policy would have it, and again for each
 * alternative with that one decision forced, everything else by the policy. Undefined where the request was not placed.
 */
export function decisionRegret(common: Setting, question: RegretQuestion): DecisionRegret | undefined {
  const { candidate, request, alternatives } = question;
  const { setting, place } = sliceOf(settingOf(common, candidate.scenario), question);
  const as = { ...candidate, scenario: undefined };
  let decision: Routed | undefined;
  const base = runCandidate(setting, as, {
    watch: (index, made) => {
      if (index === place && made.kind === "routed") decision = made;
    },
  });
  if (decision === undefined) return undefined;
  const { endpoint: chosen, breakdown, reason } = decision;
  const ranked = rankedCandidates(breakdown).sort(
    (a, b) => Number(b.endpoint === chosen) - Number(a.endpoint === chosen),
  );
  const choices = ranked.slice(0, Math.max(CHOICES_REPORTED_MAX, 1 + alternatives)).map((row, i): ScoredChoice => {
    const { endpoint, requestsInFlight, hitTokens, kvUtilization, score } = row;
    const force = () => runCandidate(setting, as, { forced: new Map([[requestId(place), endpoint]]) });
    const tried = i > alternatives ? undefined : choiceOutcome(i === 0 ? base : force(), base, place);
    return { endpoint, requestsInFlight, hitTokens, kvUtilization, score, outcome: tried };
  });
  const [own, ...others] = choices.flatMap(({ outcome }) => (outcome === undefined ? [] : [outcome]));
  return {
    request,
    promptTokens: common.workload.at(request)!.promptTokens,
    reason,
    chosen,
    choices,
    regretMicros: Math.max(0, ...others.map(({ e2eMicros }) => own!.e2eMicros - e2eMicros)),
    windowRegretMicros: Math.max(0, ...others.map(({ windowChangeMicros }) => -windowChangeMicros)),
  };
}

function choiceOutcome(other: CandidateOutcome, base: CandidateOutcome, place: number): ChoiceOutcome {
  const since = base.arrivalMicros[place]!;
  let affected = 0;
  let affectedSum = 0;
  let windowSum = 0;
  for (let i = 0; i < base.e2eMicros.length; i++) {
    const change = other.e2eMicros[i]! - base.e2eMicros[i]!;
    if (!(base.arrivalMicros[i]! >= since) || Number.isNaN(change)) continue;
    windowSum += change;
    if (change === 0 || i === place) continue;
    affected++;
    affectedSum += change;
  }
  return {
    ttftMicros: other.ttftMicros[place]!,
    e2eMicros: other.e2eMicros[place]!,
    affected,
    affectedChangeMicros: affected === 0 ? 0 : affectedSum / affected,
    windowChangeMicros: windowSum,
  };
}

/**
 * A workload of the requests around a decision, from time 0. A conversation's first turn in it comes when it came; the
 * turns after it wait for their predecessors as ever. What became of the fleet before stands from the start.
 */
function sliceOf(setting: Setting, question: RegretQuestion): { readonly setting: Setting; readonly place: number } {
  const { around, arrivalMicros } = question;
  const startedAt = arrivalMicros[0] ?? 0;
  const conversations = new Map<string, { request: WorkloadRequest; at: Micros }[]>();
  around.forEach((index, i) => {
    const request = setting.workload.at(index)!;
    const turn = { request, at: arrivalMicros[i]! - startedAt };
    const turns = request.session === "" ? undefined : conversations.get(request.session);
    if (turns === undefined) conversations.set(request.session === "" ? `${ALONE}${i}` : request.session, [turn]);
    else turns.push(turn);
  });
  const rows = [...conversations.values()].flatMap((turns) =>
    turns.map(({ request, at }, turn) => (turn === 0 ? begun(request, at) : request)),
  );
  return {
    place: rows.findIndex(({ index }) => index === question.request),
    setting: {
      ...setting,
      workload: rows.map((request, index) => ({ ...request, index })),
      fleetEvents: setting.fleetEvents.map((event) => shiftedEvent(event, startedAt, 0)),
      rateScale: 1,
    },
  };
}

/** No session's name, which is a conversation's or a client's. */
const ALONE = "\0alone ";

function begun(request: WorkloadRequest, arrivalMicros: Micros): WorkloadRequest {
  return { ...request, arrivalMicros, thinkMicros: undefined, parent: undefined, joins: [] };
}
