import type { Decision, RoutedPrefill, Routed } from "#core/input/decision.ts";
import type { Input } from "#core/input/input.ts";
import type { Forecast } from "#core/latency/forecast.ts";
import { DualIndex } from "#core/prefix/dual-index.ts";
import { checkProfile } from "#core/profile/check.ts";
import type { RouteRequest } from "#core/request/request.ts";
import type { Times } from "#core/rollout/judge/outcome.ts";
import { Router } from "#core/router.ts";
import type { Rollouts } from "#core/rollouts.ts";
import { JUDGE, type RolloutStep } from "#core/rollout/rollout-state.ts";
import {
  breakdownDigest,
  digestOf,
  NO_POLICY_VERSION,
  type RecordedDecision,
  type TraceHeader,
  type TraceItem,
  type TraceRecord,
} from "#trace/codec/record.ts";

/** A decision that came out otherwise than it was recorded. */
export interface DecisionDifference {
  /** Position among the trace's records, from 0. */
  readonly record: number;
  /** What differs, in words. */
  readonly what: string;
  readonly recorded: RecordedDecision | undefined;
  readonly replayed: Decision | undefined;
}

export interface ReplayResult {
  readonly runs: number;
  readonly inputs: number;
  /** Decisions that were compared. */
  readonly decisions: number;
  readonly differences: number;
  readonly first: DecisionDifference | undefined;
  /**
   * Decisions that cannot be compared: inputs before them are missing or not as they were, so the recorded router knew
   * what this one cannot; or the profile asks for what this version does not have.
   */
  readonly unverifiable: number;
  /** Why, for the first few places from where decisions of a run were not compared. */
  readonly reasons: readonly string[];
  /**
   * Of the inputs, requests that another router had sent somewhere: that is where they are in the replay too, so that
   * what is compared is what this one knew beside it.
   */
  readonly observed: number;
  /** The names of such routers. */
  readonly observedRouters: readonly string[];
  /** Places where records are missing, repeated or moved, as the numbers of decisions alone show. */
  readonly breaks: number;
}

const REASONS_MAX = 5;

/**
 * Gives a trace's inputs to a fresh router of the same profile and seed, and compares every decision bit for bit. It
 * takes one item at a time, so that it serves a file as well as a running gateway. From the first place of a run where
 * something is missing, nothing of it is compared any more.
 */
export class Replay {
  readonly #makeRouter: (header: TraceHeader) => Router;
  /** Undefined while nothing can be compared. */
  #router: Router | undefined;
  #lastSequence: number | undefined;
  #runs = 0;
  #inputs = 0;
  #decisions = 0;
  #differences = 0;
  #unverifiable = 0;
  #first: DecisionDifference | undefined;
  #decided: Decision | undefined;
  #breaks = 0;
  #observed = 0;
  readonly #observedRouters = new Set<string>();
  readonly #reasons: string[] = [];

  constructor(makeRouter: (header: TraceHeader) => Router = routerOf) {
    this.#makeRouter = makeRouter;
  }

  /** As the run has it until now; undefined where it cannot be compared. */
  get rollouts(): Rollouts | undefined {
    return this.#router?.rollouts;
  }

  /** What the router made of the last item, where it was the same as recorded. */
  get decided(): Decision | undefined {
    return this.#decided;
  }

  /** The difference that this item shows, if any. Never throws for what a trace may hold. */
  take(item: TraceItem): DecisionDifference | undefined {
    this.#decided = undefined;
    switch (item.kind) {
      case "run":
        this.#begin(item.header);
        return undefined;
      case "gap":
        this.#stop(item.damage ?? `${item.dropped} records were dropped by the recorder`);
        return undefined;
      case "record":
        return this.#record(item);
    }
  }

  result(): ReplayResult {
    return {
      runs: this.#runs,
      inputs: this.#inputs,
      decisions: this.#decisions,
      differences: this.#differences,
      first: this.#first,
      unverifiable: this.#unverifiable,
      reasons: this.#reasons,
      observed: this.#observed,
      observedRouters: [...this.#observedRouters],
      breaks: this.#breaks,
    };
  }

  #begin(header: TraceHeader): void {
    this.#runs++;
    if (header.observed !== undefined && this.#observedRouters.size < REASONS_MAX)
      this.#observedRouters.add(header.observed.router);
    this.#router = undefined;
    this.#lastSequence = undefined;
    const why = incomparable(header);
    if (why !== undefined) return this.#note(why);
    try {
      this.#router = this.#makeRouter(header);
      for (const endpoint of header.endpoints) this.#router.accept({ kind: "endpoint-joined", at: 0, endpoint });
    } catch (error) {
      this.#router = undefined;
      this.#note(`run ${header.run}: no router can be made as its header states (${messageOf(error)})`);
    }
  }

  #record({ input, decision: recorded }: TraceRecord): DecisionDifference | undefined {
    const record = this.#inputs++;
    if (input.kind === "request-arrived" && (input.observed?.endpoint ?? "") !== "") this.#observed++;
    if (recorded !== undefined) this.#follow(recorded, record);
    if (this.#router !== undefined) {
      const why = unknownTo(profilesOf(input));
      if (why !== undefined) this.#stop(`record ${record}: ${why}`);
    }
    if (this.#router === undefined) {
      if (recorded !== undefined) this.#unverifiable++;
      return undefined;
    }
    let replayed: Decision | undefined;
    let what: string | undefined;
    try {
      what = differingStep(input, this.#router.rollouts.proposals);
      replayed = this.#router.accept(input);
      if (what === undefined && recorded === undefined && replayed === undefined) return undefined;
      what ??= differing(recorded, replayed);
    } catch (error) {
      what = `the input was taken when it was recorded, and is refused now: ${messageOf(error)}`;
      this.#stop(`record ${record}: ${what}`);
    }
    this.#decisions++;
    if (what === undefined) {
      this.#decided = replayed;
      return undefined;
    }
    this.#differences++;
    const difference = { record, what, recorded, replayed };
    this.#first ??= difference;
    return difference;
  }

  /** A router numbers its decisions one by one. Where that breaks, so does the trace. */
  #follow({ sequence }: RecordedDecision, record: number): void {
    const last = this.#lastSequence ?? (this.#router === undefined ? undefined : FIRST_SEQUENCE - 1);
    this.#lastSequence = sequence;
    if (last === undefined || sequence === last + 1 || this.#router === undefined) return;
    this.#breaks++;
    this.#stop(
      `record ${record}: expected decision ${last + 1}, got decision ${sequence}: records are missing or moved`,
    );
  }

  /** From here on, nothing of this run is compared. */
  #stop(reason: string): void {
    if (this.#router !== undefined) this.#note(reason);
    this.#router = undefined;
  }

  #note(reason: string): void {
    if (this.#reasons.length < REASONS_MAX) this.#reasons.push(reason);
  }
}

const FIRST_SEQUENCE = 0;

/** Why no decision of a run can be compared, whatever follows. */
function incomparable({ run, segment, derived, router }: TraceHeader): string | undefined {
  if (segment > 0) return `run ${run}: what came before segment ${segment} is missing`;
  if (derived?.replayable === false) return `run ${run}: it was made from a part of another trace`;
  return unknownTo(router.profiles);
}

/** The profiles that an input brings. */
function profilesOf(input: Input): TraceHeader["router"]["profiles"] {
  if ("profiles" in input) return input.profiles;
  return input.kind === "profile-changed" ? { [input.name]: input.profile } : {};
}

/** What profiles ask for that this version does not have. */
function unknownTo(profiles: TraceHeader["router"]["profiles"]): string | undefined {
  for (const [name, spec] of Object.entries(profiles)) {
    const [problem] = checkProfile(spec);
    if (problem !== undefined) return `profile ${name} is not one of this version: ${problem.path}: ${problem.message}`;
  }
  return undefined;
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** A router as the recorded one was at its start. */
export function routerOf(
  { router: { breaker, ...settings } }: TraceHeader,
  predictionOf?: (request: RouteRequest) => Times | undefined,
): Router {
  const options = { ...settings, index: new DualIndex(), ...(predictionOf && { predictionOf }) };
  return new Router(breaker === undefined ? options : { ...options, breaker });
}

/** A step that the judge asked for when it was recorded is asked for again, for the same reason. */
function differingStep(input: Input, proposals: readonly RolloutStep[]): string | undefined {
  if (input.kind !== "rollout-step" || input.by !== JUDGE) return undefined;
  const proposed = proposals.find(({ rollout }) => rollout === input.rollout);
  if (proposed?.step === input.step && proposed.reason === input.reason) return undefined;
  const now = proposed === undefined ? "none" : `${proposed.step} (${proposed.reason})`;
  return `rollout ${input.rollout}: the judge asked for ${input.step} (${input.reason}), and for ${now} when replayed`;
}

function differing(recorded: RecordedDecision | undefined, replayed: Decision | undefined): string | undefined {
  if (recorded === undefined || replayed === undefined) {
    return `${recorded === undefined ? "no decision" : "a decision"} was recorded, ${replayed === undefined ? "none" : "one"} was made`;
  }
  for (const field of ["kind", "sequence", "attempt", "profile", "reason"] as const) {
    if (recorded[field] !== replayed[field])
      return `${field}: ${recorded[field]} recorded, ${replayed[field]} replayed`;
  }
  if (recorded.policyVersion !== NO_POLICY_VERSION && recorded.policyVersion !== replayed.policyVersion) {
    return `policyVersion: ${recorded.policyVersion} recorded, ${replayed.policyVersion} replayed`;
  }
  if (JSON.stringify(recorded.rollout) !== JSON.stringify(replayed.rollout)) {
    return `rollout: ${shown(recorded)} recorded, ${shown(replayed)} replayed`;
  }
  if (recorded.kind === "routed" && replayed.kind === "routed") {
    for (const field of ["endpoint", "hitTokens", "prefixSource", "usedLedger", "priority"] as const) {
      if (recorded[field] !== replayed[field])
        return `${field}: ${recorded[field]} recorded, ${replayed[field]} replayed`;
    }
    if (!isSameForecast(recorded.forecast, replayed.forecast)) {
      return `forecast: ${JSON.stringify(recorded.forecast)} recorded, ${JSON.stringify(replayed.forecast)} replayed`;
    }
    const stages = differingStages(recorded, replayed);
    if (stages !== undefined) return stages;
  }
  const digest = breakdownDigest(replayed.breakdown);
  if (recorded.breakdown.digest === digest) return undefined;
  return `scores: digest ${recorded.breakdown.digest} recorded, ${digest} replayed`;
}

/** An older trace has none of the next best. */
function isSameForecast(recorded: Forecast | undefined, replayed: Forecast | undefined): boolean {
  if (recorded === undefined || replayed === undefined) return recorded === replayed;
  const { ttftMicros, tpotMicros, nextTtftMicros = replayed.nextTtftMicros } = recorded;
  return (
    ttftMicros === replayed.ttftMicros &&
    tpotMicros === replayed.tpotMicros &&
    nextTtftMicros === replayed.nextTtftMicros
  );
}

/** What of a stage is compared by its digest, or is not written whole. */
function isComparedApart(field: keyof RoutedPrefill): field is "breakdown" | "heldTokens" | "noted" {
  return field === "breakdown" || field === "heldTokens" || field === "noted";
}

function differingStages(
  recorded: RecordedDecision & { readonly kind: "routed" },
  { prefill, colocated }: Routed,
): string | undefined {
  if (recorded.colocated !== colocated) return `colocated: ${recorded.colocated} recorded, ${colocated} replayed`;
  const before = recorded.prefill;
  if (before === undefined && prefill === undefined) return undefined;
  const fields = Object.keys({ ...before, ...prefill }) as (keyof RoutedPrefill)[];
  for (const field of fields) {
    if (isComparedApart(field) || before?.[field] === prefill?.[field]) continue;
    return `prefill.${field}: ${before?.[field]} recorded, ${prefill?.[field]} replayed`;
  }
  if (before === undefined || prefill === undefined) return undefined;
  const digests = [digestOf(before.breakdown), digestOf(prefill.breakdown)];
  if (digests[0] === digests[1]) return undefined;
  return `prefill.scores: digest ${digests[0]} recorded, ${digests[1]} replayed`;
}

function shown({ rollout }: Pick<Decision, "rollout">): string {
  return rollout === undefined ? "none" : `${rollout.name}, ${rollout.arm}, window ${rollout.window}`;
}
