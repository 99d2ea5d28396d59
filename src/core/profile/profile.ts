import { assert } from "../base/assert.ts";
import { ABSTAINED, ColumnBreakdown, DoubleSlab, nextBest } from "../input/breakdown.ts";
import type { Decision } from "../input/decision.ts";
import { ELIGIBILITY, type MayServe } from "../endpoint/eligibility.ts";
import type { EndpointId } from "../endpoint/endpoint.ts";
import type { Snapshot } from "../endpoint/snapshot.ts";
import type { Filter } from "../filter/filter.ts";
import type { Input } from "../input/input.ts";
import type { Forecast } from "../latency/forecast.ts";
import type { Noted, Noter } from "../request/noted.ts";
import type { Picker } from "../picker/picker.ts";
import type { Random } from "../base/random.ts";
import type { RouteRequest } from "../request/request.ts";
import { ABSTAIN, type Scorer } from "../scorer/scorer.ts";
import type { PromptDivision } from "./profile-stages.ts";

/** Sum of all weights, less what rounding may take off. No profile has a weight this small beside others. */
const ALL_WEIGHT = 1 - 1e-9;

export interface Choice {
  /** Index into the snapshots; -1 when nobody is left. */
  readonly index: number;
  /** As Routed.reason; for a refusal, the name of the filter that removed the last candidate. */
  readonly reason: string;
  readonly breakdown: ColumnBreakdown;
  /** Of a refusal: every filter that removed a candidate did so for what the endpoint is. */
  readonly excluded?: true;
}

/** Why a request for which somebody was eligible got nobody. */
export function filteredReason({ excluded }: Choice): "excluded" | "saturated" {
  return excluded === true ? "excluded" : "saturated";
}

/** The plugins of one profile, ready to run. */
export interface ProfilePlugins {
  readonly filters: readonly Filter[];
  /** Weights above 0 of any sum. */
  readonly scorers: readonly { readonly scorer: Scorer; readonly weight: number }[];
  readonly picker: Picker;
}

/** Filters, then weighted scorers, then the picker: one policy. */
export class Profile {
  readonly name: string;
  /** Some plugin wants to see every input, not only what came of the profile's own decisions. */
  readonly watches: boolean;
  /** In the order of the spec. */
  readonly plugins: ProfilePlugins;
  /** Where another endpoint than the chosen one may compute the prompt. */
  readonly division: PromptDivision<Profile> | undefined;
  /** Who may answer; undefined for any. */
  readonly mayAnswer: MayServe | undefined;
  readonly #filters: readonly Filter[];
  readonly #scorers: readonly Scorer[];
  readonly #picker: Picker;
  readonly #forecaster: Scorer | undefined;
  readonly #noters: readonly Noter[];
  readonly #weights: readonly { readonly name: string; readonly weight: number }[];
  readonly #removers: readonly string[];
  readonly #slab = new DoubleSlab();
  readonly #keepsBreakdowns: boolean;
  #lastBreakdown: ColumnBreakdown | undefined = undefined;
  /** 0, 1, 2, ... as many as there were snapshots last. */
  #all: readonly number[] = [];
  #keep = new Uint8Array(0);
  #scores = new Float64Array(0);
  #totals = new Float64Array(0);
  #abstained = new Float64Array(0);

  /** Without `keepsBreakdowns` a choice's breakdown is valid until the next choice. */
  constructor(name: string, plugins: ProfilePlugins, keepsBreakdowns = true, division?: PromptDivision<Profile>) {
    this.name = name;
    this.division = division;
    this.mayAnswer = division && ((endpoint) => division.roles.may("decode", endpoint));
    this.#keepsBreakdowns = keepsBreakdowns;
    this.plugins = plugins;
    this.#filters = plugins.filters;
    this.#scorers = plugins.scorers.map(({ scorer }) => scorer);
    this.#picker = plugins.picker;
    this.#forecaster = this.#scorers.find((scorer) => "forecast" in scorer);
    this.#noters = [...this.#filters, ...this.#scorers, this.#picker].filter((plugin) => plugin.note !== undefined);
    const sum = plugins.scorers.reduce((total, { weight }) => total + weight, 0);
    this.#weights = plugins.scorers.map(({ scorer, weight }) => ({ name: scorer.name, weight: weight / sum }));
    this.#removers = [...ELIGIBILITY, ...plugins.filters.map((filter) => filter.name)];
    const watches = [...this.#filters, ...this.#scorers].some((plugin) => plugin.observe !== undefined);
    this.watches = watches || division?.prefill.watches === true;
  }

  /**
   * Chooses among `snapshots` (in order of id) whose `ineligible` entry is 0; other entries index ELIGIBILITY. Changes
   * nothing but its own scratch space.
   */
  choose(
    request: RouteRequest,
    snapshots: readonly Snapshot[],
    endpoints: readonly EndpointId[],
    ineligible: Uint8Array,
    random: Random,
  ): Choice {
    const breakdown = this.#begin(snapshots, endpoints);
    let left = this.#eligible(ineligible, snapshots.length, breakdown);
    if (left.length === 0) return { index: -1, reason: "", breakdown };
    let byKind = true;
    for (let f = 0; f < this.#filters.length; f++) {
      const before = left.length;
      left = this.#filterOnce(f, request, snapshots, left, breakdown, random);
      if (left.length < before) byKind &&= this.#filters[f]!.byKind === true;
      const reason = this.#filters[f]!.name;
      if (left.length === 0) return { index: -1, reason, breakdown, ...(byKind && { excluded: true }) };
    }
    const candidates = candidatesOf(snapshots, left);
    const totals = this.#total(request, candidates, left, breakdown);
    const picked = this.#picker.pick(request, candidates, totals, random);
    assert(picked >= 0 && picked < candidates.length, "a picker picks one of its candidates");
    return { index: left[picked]!, reason: this.#reason(left, picked, totals, breakdown), breakdown };
  }

  /** By the first scorer that predicts times; undefined where none does. */
  forecast(request: RouteRequest, snapshots: readonly Snapshot[], choice: Choice): Forecast | undefined {
    const forecaster = this.#forecaster;
    if (forecaster?.forecast === undefined) return undefined;
    const { ttftMicros, tpotMicros } = forecaster.forecast(request, snapshots[choice.index]!);
    const next = snapshots[nextBest(choice.breakdown.totals, choice.index)];
    if (next === undefined) return { ttftMicros, tpotMicros };
    return { ttftMicros, tpotMicros, nextTtftMicros: forecaster.forecast(request, next).ttftMicros };
  }

  /** What its plugins note of the choice that was made last; undefined where that is nothing. */
  noted(chosen: Snapshot): Noted | undefined {
    let noted: Noted | undefined;
    for (let i = 0; i < this.#noters.length; i++) {
      const note = this.#noters[i]!.note?.(chosen);
      if (note !== undefined) noted = noted === undefined ? note : { ...noted, ...note };
    }
    return noted;
  }

  #begin(snapshots: readonly Snapshot[], endpoints: readonly EndpointId[]): ColumnBreakdown {
    const last = this.#lastBreakdown;
    if (last?.endpoints === endpoints) {
      last.begin(snapshots);
      return last;
    }
    const breakdown = new ColumnBreakdown(snapshots, endpoints, this.#weights, this.#removers, this.#slab);
    if (!this.#keepsBreakdowns) this.#lastBreakdown = breakdown;
    return breakdown;
  }

  /**
   * Scorers and filters see every input, so that a profile which is not in force stays warm; the picker only its own
   * decisions.
   */
  observe(input: Input, made: Decision | undefined, request: RouteRequest | undefined): void {
    this.division?.prefill.observe(input, prefillView(made), request);
    const decision = decodeView(made, request);
    for (let i = 0; i < this.#filters.length; i++) this.#filters[i]!.observe?.(input, decision, request);
    for (let i = 0; i < this.#scorers.length; i++) this.#scorers[i]!.observe?.(input, decision, request);
    if (decision !== undefined && decision.profile === this.name) this.#picker.observe?.(input, decision);
  }

  /** Places of those whose entry is 0; where that is all of them, as it mostly is, always the same array. */
  #eligible(ineligible: Uint8Array, count: number, breakdown: ColumnBreakdown): readonly number[] {
    if (this.#all.length !== count) this.#all = Array.from({ length: count }, (_, i) => i);
    let first = 0;
    while (first < count && ineligible[first] === 0) first++;
    if (first === count) return this.#all;
    const left: number[] = [];
    for (let i = 0; i < count; i++) {
      if (ineligible[i] === 0) left.push(i);
      else breakdown.remove(i, ineligible[i]!);
    }
    return left;
  }

  #filterOnce(
    f: number,
    request: RouteRequest,
    snapshots: readonly Snapshot[],
    left: readonly number[],
    breakdown: ColumnBreakdown,
    random: Random,
  ): readonly number[] {
    // As long as there are candidates: a filter may read its length.
    if (this.#keep.length !== left.length) this.#keep = new Uint8Array(left.length);
    const keep = this.#keep.fill(1);
    this.#filters[f]!.filter(request, candidatesOf(snapshots, left), keep, random);
    let first = 0;
    while (first < left.length && keep[first] === 1) first++;
    if (first === left.length) return left;
    const kept: number[] = [];
    for (let i = 0; i < left.length; i++) {
      if (keep[i] === 1) kept.push(left[i]!);
      else breakdown.remove(left[i]!, ELIGIBILITY.length + f);
    }
    return kept;
  }

  /**
   * Clamps each score to [0, 1], weighs and sums in profile order. Where a scorer abstains from a candidate, the
   * weights of its other scorers are scaled up to sum 1; where all abstain, nothing speaks against the candidate, and it
   * ties with the best of the others. Any less and it would never be tried, and stay unknown for good.
   */
  #total(
    request: RouteRequest,
    candidates: readonly Snapshot[],
    left: readonly number[],
    breakdown: ColumnBreakdown,
  ): Float64Array {
    const count = candidates.length;
    if (this.#scores.length < count) {
      this.#scores = new Float64Array(count);
      this.#totals = new Float64Array(count);
      this.#abstained = new Float64Array(count);
    }
    const scores = leading(this.#scores, count);
    const totals = leading(this.#totals, count).fill(0);
    const abstained = leading(this.#abstained, count).fill(0);
    const rowLength = breakdown.totals.length;
    for (let s = 0; s < this.#scorers.length; s++) {
      const { weight } = this.#weights[s]!;
      scores.fill(0);
      this.#scorers[s]!.score(request, candidates, scores);
      for (let i = 0; i < count; i++) {
        let score = scores[i]!;
        assert(!Number.isNaN(score), "a score is a number");
        const cell = s * rowLength + left[i]!;
        if (score === ABSTAIN) {
          abstained[i]! += weight;
          breakdown.values[cell] = ABSTAINED;
          continue;
        }
        if (score < 0 || score > 1) {
          score = score < 0 ? 0 : 1;
          breakdown.clamped++;
        }
        breakdown.values[cell] = score;
        totals[i]! += score * weight;
      }
    }
    let best = 0;
    for (let i = 0; i < count; i++) {
      if (abstained[i]! > 0 && abstained[i]! < ALL_WEIGHT) totals[i]! /= 1 - abstained[i]!;
      best = Math.max(best, totals[i]!);
    }
    for (let i = 0; i < count; i++) {
      if (abstained[i]! >= ALL_WEIGHT) totals[i] = best;
      breakdown.totals[left[i]!] = totals[i]!;
    }
    return totals;
  }

  /** The scorer that put the winner furthest ahead of the runner-up, in weighted terms. */
  #reason(left: readonly number[], picked: number, totals: Float64Array, breakdown: ColumnBreakdown): string {
    if (left.length === 1) return "only";
    if (!this.#picker.followsTotals) return this.#picker.name;
    let runnerUp = -1;
    for (let i = 0; i < left.length; i++) {
      if (i !== picked && (runnerUp < 0 || totals[i]! > totals[runnerUp]!)) runnerUp = i;
    }
    if (Math.abs(totals[picked]! - totals[runnerUp]!) <= this.#picker.epsilon) return "tie";
    let lead = -Infinity;
    let reason = this.#picker.name;
    const rowLength = breakdown.totals.length;
    for (let s = 0; s < this.#scorers.length; s++) {
      const winner = breakdown.values[s * rowLength + left[picked]!]!;
      const second = breakdown.values[s * rowLength + left[runnerUp]!]!;
      if (winner === ABSTAINED || second === ABSTAINED) continue;
      const ahead = (winner - second) * this.#weights[s]!.weight;
      if (ahead > lead) {
        lead = ahead;
        reason = this.#scorers[s]!.reason ?? this.#weights[s]!.name;
      }
    }
    return reason;
  }
}

/** The snapshots at those places; all of them as they are. */
function candidatesOf(snapshots: readonly Snapshot[], left: readonly number[]): readonly Snapshot[] {
  return left.length === snapshots.length ? snapshots : left.map((index) => snapshots[index]!);
}

/** A view of the first ones, or all of them as they are. */
function leading(numbers: Float64Array, count: number): Float64Array {
  return count === numbers.length ? numbers : numbers.subarray(0, count);
}

/** Name of what of a profile chooses for prompts, as its plugins see it in decisions. */
export function prefillProfileName(profile: string): string {
  return `${profile}/prefill`;
}

/**
 * A decision as the plugins see it that choose who answers: where another endpoint computes the prompt, all of it
 * comes.
 */
function decodeView(decision: Decision | undefined, request: RouteRequest | undefined): Decision | undefined {
  if (decision?.kind !== "routed" || decision.prefill === undefined || request === undefined) return decision;
  return { ...decision, hitTokens: Math.max(0, request.promptTokens - 1) };
}

/** The same as the plugins see it that choose who computes the prompt. */
function prefillView(decision: Decision | undefined): Decision | undefined {
  if (decision?.kind !== "routed" || decision.prefill === undefined) return decision;
  const { noted: _ofWhoAnswers, ...both } = decision;
  return { ...both, ...decision.prefill, profile: prefillProfileName(decision.profile) };
}
