import { assert } from "./base/assert.ts";
import { letInElsewhere } from "./admission/let-in-elsewhere.ts";
import { usedElsewhere } from "./admission/used-elsewhere.ts";
import { AdmissionController } from "./admission-controller.ts";
import { EMPTY_BREAKDOWN } from "./input/breakdown.ts";
import type { Decision, Placed, Routed } from "./input/decision.ts";
import { BREAKER_DEFAULTS, type BreakerOptions } from "./endpoint/breaker.ts";
import type { EndpointId } from "./endpoint/endpoint.ts";
import type { EndpointState } from "./endpoint/endpoint-state.ts";
import { applyEndpointInput } from "./endpoint-input.ts";
import { Fleet, type FleetOptions } from "./fleet/fleet.ts";
import { asksForStandby, isStageAsking, isStageInput } from "./request/stage-inputs.ts";
import type { AskingInput, Input, RequestAgain, RequestArrived, RequestReleased } from "./input/input.ts";
import { PeerBook } from "./peer/peer-book.ts";
import type { ObservedPlace } from "./request/observed-place.ts";
import { type Pending, triedIfItFails } from "./pending.ts";
import type { PrefixIndex } from "./prefix/prefix-index.ts";
import { Placements } from "./placement/placements.ts";
import { FIRST_POLICY_VERSION, type PolicySpec } from "./plugin/spec.ts";
import { type Choice, filteredReason, type Profile } from "./profile/profile.ts";
import { ProfileSet } from "./profile/profile-set.ts";
import { type Random, randomFor } from "./base/random.ts";
import { applyRolloutInput } from "./rollout-input.ts";
import { decisionRollout, leavesPool } from "./rollout-decision.ts";
import { type RolloutMembership, Rollouts } from "./rollouts.ts";
import type { RouteRequest } from "./request/request.ts";
import type { TakerKind } from "./path/wait-verdict.ts";
import type { Times } from "./rollout/judge/outcome.ts";
import { SessionInference } from "./session/session-inference.ts";
import type { Micros } from "./base/units.ts";

export interface RouterOptions extends Omit<FleetOptions, "breaker">, Omit<PolicySpec, "version"> {
  /** Names every random stream. */
  readonly seed: number;
  /** Of the policy that it starts with; FIRST_POLICY_VERSION where it is left out. */
  readonly policyVersion?: number;
  readonly breaker?: BreakerOptions;
  /** The random stream of each decision, by its sequence; one of the seed's where it is left out. */
  readonly streamOf?: (sequence: number) => Random;
  /** What the simulator expects of a request if a rollout's control routes everything; undefined where it is not known. */
  readonly predictionOf?: (request: RouteRequest) => Times | undefined;
  /** Notified of prompts' ends and their conversations while they are inferred, for `sessions-restored` later. */
  readonly sessionRemembered?: (prompt: number, conversation: number) => void;
  /** False where nobody looks at a decision's breakdown after the next decision: it is then overwritten. */
  readonly keepsBreakdowns?: boolean;
  /** Notified of what each decision sees, before it is made; nothing of it may be kept. For questions to other policies. */
  readonly sees?: (view: DecisionView) => void;
}

/** A request and all endpoints in order of id, as Profile.choose takes them. */
export interface DecisionView {
  readonly at: Micros;
  readonly request: RouteRequest;
  readonly states: readonly EndpointState[];
  readonly ids: readonly EndpointId[];
  /** 0 for those that may serve it. */
  readonly ineligible: Uint8Array;
}

/**
 * The decision, and all state behind it. Both hosts, live and simulated, run this class and nothing beside it.
 *
 * `accept` takes inputs in order of time and is synchronous: between reading the snapshots and charging the ledger
 * nothing else runs. Same options and same inputs give the same decisions, bit for bit. The pending table holds the
 * requests in flight, which the host bounds.
 */
export class Router {
  readonly #seed: number;
  readonly #streamOf: RouterOptions["streamOf"];
  readonly #sees: RouterOptions["sees"];
  readonly #draws: DecisionDraws;
  readonly #profiles: ProfileSet;
  readonly #index: PrefixIndex;
  readonly #fleet: Fleet;
  readonly #placements: Placements;
  readonly #sessions: SessionInference;
  readonly rollouts: Rollouts;
  /** What other routers of the same endpoints reported. */
  readonly peers: PeerBook;
  /** Who is let in, and who waits. */
  readonly admission: AdmissionController;
  #sequence = 0;

  constructor(options: RouterOptions) {
    this.#seed = options.seed;
    this.#streamOf = options.streamOf;
    this.#sees = options.sees;
    this.#draws = new DecisionDraws(options.seed);
    this.#index = options.index;
    this.#fleet = new Fleet({ ...options, breaker: options.breaker ?? BREAKER_DEFAULTS });
    this.admission = new AdmissionController(this.#fleet);
    this.admission.configure(options.admission, 0, []);
    this.#placements = new Placements(this.#fleet, options.index, this.admission);
    this.#sessions = new SessionInference(undefined, options.sessionRemembered);
    this.rollouts = new Rollouts(options.predictionOf);
    const policy = { ...options, version: options.policyVersion ?? FIRST_POLICY_VERSION };
    const profiles = new ProfileSet(policy, options.keepsBreakdowns ?? true);
    this.#profiles = profiles;
    this.peers = new PeerBook({
      fleet: this.#fleet,
      index: this.#index,
      named: (request) => this.#named(request),
      letIn: (at, request, { endpoint }, newTokens, taken) =>
        letInElsewhere(this.admission.shared, at, request, endpoint.labels, newTokens, taken),
      limits: () => this.admission.limits,
      used: (at, used) => usedElsewhere(this.admission.limits.values(), at, used),
      observe: (input, decision, request) => profiles.observe(input, decision, request),
    });
  }

  /**
   * With `forced` a request goes to that endpoint if it may serve it, whatever the policy and its filters say; the
   * breakdown is what the policy saw. For questions of what would have been; live and in a replay nothing is forced.
   */
  accept(input: RequestAgain, forced?: EndpointId): Placed;
  accept(input: AskingInput, forced?: EndpointId): Decision;
  accept(input: Input): Decision | undefined;
  accept(input: Input, forced?: EndpointId): Decision | undefined {
    const { watched } = this.#profiles;
    const { pending } = this.#placements;
    // Its end takes it from the table.
    const before = watched && "requestId" in input ? pending.get(input.requestId) : undefined;
    const decision = this.#decision(input, forced);
    const isFirst = input.kind === "request-arrived";
    // Which of two endpoints a request is at is open: whoever learns from decisions has the first.
    if (decision !== undefined && !isFirst && asksForStandby(input)) return decision;
    if (watched) {
      const request = (isFirst ? pending.get(input.request.id) : before)?.request;
      for (const profile of this.#profiles.all) profile.observe(input, decision, request);
    }
    // Where nobody watches, only decisions are of interest, to the picker that made them.
    else if (decision !== undefined) this.#profiles.get(decision.profile)?.observe(input, decision, undefined);
    if (this.rollouts.isWatching) this.rollouts.observe(input, decision);
    return decision;
  }

  /** Requests between arrival and end. */
  get inFlight(): number {
    return this.#placements.pending.size;
  }

  /** Requests that are charged to some endpoint. */
  get openCharges(): number {
    return this.#placements.openCharges;
  }

  /** Inputs naming requests that are not in flight: one that came after the end, or a gap in a trace. */
  get strayInputs(): number {
    return this.#placements.strayInputs;
  }

  /** Number of the policy in force. */
  get policyVersion(): number {
    return this.#profiles.version;
  }

  /** A request in flight, as it was let in. */
  requestOf(requestId: string): RouteRequest | undefined {
    return this.#placements.pending.get(requestId)?.request;
  }

  endpointRows(at: Micros): ReturnType<Fleet["rows"]> {
    return this.#fleet.rows(at);
  }

  /**
   * Whether an endpoint that is well, and was not tried for it yet, may take a request that is in flight; `idle`: one that
   * would answer it at once, unlike the busier one that has it.
   */
  hasTaker(at: Micros, requestId: string, which: TakerKind = "any"): boolean {
    const pending = this.#placements.pending.get(requestId);
    if (pending === undefined || (which === "idle" && pending.state === undefined)) return false;
    const profile = this.#profileOf(pending);
    return this.#fleet.hasTaker(
      at,
      pending.request,
      triedIfItFails(pending),
      profile.mayAnswer,
      which === "idle" ? pending.state : undefined,
    );
  }

  /** Whether an endpoint turned a request down as it leaves, and served none since. */
  isDraining(endpoint: EndpointId): boolean {
    return this.#fleet.get(endpoint)?.breaker.isDraining === true;
  }

  #decision(input: Input, forced: EndpointId | undefined): Decision | undefined {
    switch (input.kind) {
      case "request-arrived":
        return this.#arrived(input, forced);
      case "request-retried":
        return this.#again(input.at, this.#placements.retried(input), forced);
      case "request-released":
        return this.#released(input, forced);
      case "first-token":
      case "prefill-finished":
      case "prefill-failed":
      case "transfer-failed":
      case "progress":
      case "attempt-failed":
      case "request-moved":
      case "request-finished":
      case "answer-known":
        this.#placements.follow(input);
        return undefined;
      case "profile-changed":
        this.#profiles.set(input.name, input.profile);
        return undefined;
      case "policy-changed":
        this.#profiles.replace(input);
        this.admission.configure(input.admission, input.at, this.#placements.pending.values());
        return undefined;
      case "block-size-changed":
        this.#fleet.resizeBlocks(input.blockTokens);
        this.#placements.forgetAnswers();
        return undefined;
      case "rollout-planned":
      case "rollout-step":
      case "rollout-removed":
      case "rollout-restored":
      case "rollout-look":
      case "rollout-predicted":
      case "rollout-shared":
      case "sessions-restored":
        applyRolloutInput(this.rollouts, this.#profiles, this.#sessions, input);
        return undefined;
      case "peer-reported":
      case "peer-left":
        this.peers.accept(input);
        return undefined;
      default:
        if (isStageAsking(input)) return this.#again(input.at, this.#placements.ofStage(input), forced);
        if (isStageInput(input)) {
          this.#placements.follow(input);
          return undefined;
        }
        applyEndpointInput(this.#fleet, this.#index, input);
        if (input.kind === "endpoint-joined") this.#placements.returned(input.endpoint.id);
        else if (input.kind === "endpoint-resumed") this.#placements.returned(input.endpoint);
        return undefined;
    }
  }

  #arrived({ at, request: asked, observed }: RequestArrived, forced: EndpointId | undefined): Decision {
    assert(!this.#placements.pending.has(asked.id), "a request id is in flight once");
    const named = this.#named(asked);
    const request = this.admission.isActive ? this.admission.stamped(named, at) : named;
    const pending: Pending = {
      request,
      asked: request,
      membership: this.rollouts.takesRequests ? this.rollouts.assign(request, at) : undefined,
      tried: NONE_TRIED,
      attempts: 0,
      continuedTokens: 0,
      state: undefined,
      insertion: undefined,
      prefill: undefined,
      transferFailed: false,
      standby: undefined,
      sentAt: at,
      firstTokenAt: undefined,
      permit: undefined,
      waiting: undefined,
    };
    this.#placements.pending.set(request.id, pending);
    return this.#decide(at, pending, forced, observed);
  }

  #named(request: RouteRequest): RouteRequest {
    const readsSessions = this.#profiles.readsSessions || this.rollouts.readsSessions;
    return readsSessions ? { ...request, session: this.#sessions.sessionOf(request) } : request;
  }

  #again(at: Micros, pending: Pending, forced: EndpointId | undefined): Placed {
    const decision = this.#decide(at, pending, forced);
    assert(decision.kind !== "queued", "a request is let in once");
    return decision;
  }

  #released({ at, requestId }: RequestReleased, forced: EndpointId | undefined): Decision {
    const pending = this.#placements.pending.get(requestId);
    assert(pending?.waiting !== undefined, "a request that is released waits");
    return this.#decide(at, pending, forced);
  }

  #decide(at: Micros, pending: Pending, forced: EndpointId | undefined, observed?: ObservedPlace): Decision {
    const { request, membership } = pending;
    const fleet = this.#fleet;
    const profile = this.#profileOf(pending);
    const sequence = this.#sequence++;
    const refusal = fleet.markIneligible(at, request, pending.tried, profile.mayAnswer);
    const admission = this.admission.isActive || pending.waiting !== undefined ? this.admission : undefined;
    // What admission holds back is not scored.
    const held = admission?.hold(at, pending, refusal);
    if (held !== undefined)
      return { ...held, ...this.#head(at, sequence, pending, profile.name), breakdown: EMPTY_BREAKDOWN };
    const usedLedger = fleet.refresh(at, request);
    const outsidePool = membership !== undefined && leavesPool(fleet, membership);
    const random = this.#streamOf?.(sequence) ?? this.#draws.begin(sequence);
    this.#sees?.({ at, request, states: fleet.states, ids: fleet.ids, ineligible: fleet.ineligible });
    const chosen = profile.choose(request, fleet.states, fleet.ids, fleet.ineligible, random);
    const seen = observed === undefined ? chosen : observedChoice(chosen, fleet, observed.endpoint);
    const choice = forced === undefined ? seen : forcedChoice(chosen, fleet, forced);
    const { breakdown, reason } = choice;
    const noted = choice.index < 0 ? undefined : profile.noted(fleet.states[choice.index]!);
    const rollout = membership && this.#rollout(at, sequence, pending, membership, outsidePool, profile);
    // A second endpoint outside of the first one's pool would take the request out of its arm.
    const state = outsidePool && pending.state !== undefined ? undefined : fleet.states[choice.index];
    if (state === undefined) {
      const why = refusal ?? filteredReason(choice);
      const unplaced = admission?.unplaced(at, pending, why);
      const head = this.#head(at, sequence, pending, profile.name);
      return { kind: "rejected", reason: why, ...unplaced, ...head, breakdown, ...(rollout && { rollout }) };
    }
    const refused = admission?.place(at, pending, state);
    if (refused !== undefined) {
      const head = this.#head(at, sequence, pending, profile.name);
      return { ...refused, ...head, breakdown, ...(rollout && { rollout }) };
    }
    const attempt = pending.attempts + 1;
    // A second endpoint beside one that has the request does all itself.
    const isShared = profile.division !== undefined && pending.state === undefined && observed === undefined;
    const prefill = isShared ? this.#prefill(at, profile.division, pending, state, random) : undefined;
    const forecast = profile.forecast(request, fleet.states, choice);
    this.#placements.place(at, pending, state, typeof prefill === "object" ? prefill : undefined);
    const { id: endpoint, hitTokens, heldTokens, prefixSource } = state;
    const priority = admission?.priorityOf(request);
    const routed: { -readonly [K in keyof Routed]: Routed[K] } = {
      kind: "routed",
      at,
      sequence,
      requestId: request.id,
      attempt,
      profile: profile.name,
      policyVersion: this.#profiles.version,
      endpoint,
      reason,
      hitTokens,
      prefixSource,
      usedLedger,
      breakdown,
    };
    if (rollout !== undefined) routed.rollout = rollout;
    if (heldTokens !== hitTokens) routed.heldTokens = heldTokens;
    if (typeof prefill === "object") {
      routed.prefill = prefill.prefill;
      if (prefill.isFirst) routed.sentFirst = prefill.state.id;
    }
    // It is of one endpoint that does both.
    else if (forecast !== undefined) routed.forecast = forecast;
    if (typeof prefill === "string") routed.colocated = prefill;
    if (noted !== undefined) routed.noted = noted;
    if (priority !== undefined) routed.priority = priority;
    return routed;
  }

  /** Who computes the prompt of a request that `answers` answers, or why that one does; the fleet's marks are of that then. */
  #prefill(
    at: Micros,
    division: NonNullable<Profile["division"]>,
    pending: Pending,
    answers: EndpointState,
    random: Random,
  ) {
    const { request, tried, transferFailed, asked, membership } = pending;
    const { states, ids, ineligible } = this.#fleet;
    const marks = (): Uint8Array => {
      this.#fleet.markForPrefill(at, request, tried, answers, division.roles);
      if (membership !== undefined) leavesPool(this.#fleet, membership);
      return ineligible;
    };
    const past = { continued: request !== asked, transferFailed };
    return division.choose({ request, answers, past, random }, { states, ids, marks });
  }

  /** Its arm's, where the arm names one, else what the host selected, which mostly is none. */
  #profileOf({ request, membership }: Pending): Profile {
    const own = membership?.assignment.profile;
    const name = own === undefined || own === "" ? request.profile : own;
    return name === "" ? this.#profiles.byDefault : this.#profiles.choose(name);
  }

  /** Of a decision that sends the request nowhere. */
  #head(at: Micros, sequence: number, { request, attempts }: Pending, profile: string) {
    const { version: policyVersion } = this.#profiles;
    return { at, sequence, requestId: request.id, attempt: attempts + 1, profile, policyVersion };
  }

  #rollout(
    at: Micros,
    sequence: number,
    pending: Pending,
    membership: RolloutMembership,
    outsidePool: boolean,
    profile: Profile,
  ) {
    const stream = (): Random => this.#streamOf?.(sequence) ?? randomFor(this.#seed, sequence);
    return decisionRollout(at, pending, membership, outsidePool, profile, this.#fleet, this.#profiles, stream);
  }
}

/** The random stream of the decision under way. Most decisions draw nothing, so that none is made before the first draw. */
class DecisionDraws implements Random {
  readonly #seed: number;
  #sequence = 0;
  #stream: Random | undefined;

  constructor(seed: number) {
    this.#seed = seed;
  }

  begin(sequence: number): this {
    this.#sequence = sequence;
    this.#stream = undefined;
    return this;
  }

  next(): number {
    this.#stream ??= randomFor(this.#seed, this.#sequence);
    return this.#stream.next();
  }

  below(bound: number): number {
    this.#stream ??= randomFor(this.#seed, this.#sequence);
    return this.#stream.below(bound);
  }
}

/** Nobody pushes to it: the first endpoint makes an array of its own. */
const NONE_TRIED: EndpointId[] = [];

/** What `choice` is where another router has made it: it may have sent the request to whom this one takes out. */
function observedChoice(choice: Choice, { ids }: Fleet, endpoint: EndpointId): Choice {
  const index = ids.indexOf(endpoint);
  return index < 0 ? choice : { ...choice, index, reason: "observed" };
}

/** What `choice` is where somebody overrules it; an endpoint that may not serve cannot be forced. */
function forcedChoice(choice: Choice, { ids, ineligible }: Fleet, forced: EndpointId): Choice {
  const index = ids.indexOf(forced);
  if (index < 0 || index === choice.index || ineligible[index] !== 0) return choice;
  return { ...choice, index, reason: "forced" };
}
