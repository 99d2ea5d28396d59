import type { AdmissionPolicy } from "#core/admission/admission.ts";
import type { Decision } from "#core/input/decision.ts";
import type { EndpointId } from "#core/endpoint/endpoint.ts";
import type { ExogenousInput, Input } from "#core/input/input.ts";
import type { PrefixIndex } from "#core/prefix/prefix-index.ts";
import type { PriorityPolicy } from "#core/priority/priority.ts";
import type { PathRules } from "#core/path/path-rules.ts";
import type { RouterOptions } from "#core/router.ts";
import type { Micros } from "#core/base/units.ts";
import type { EngineConfig } from "#engine/config.ts";
import type { EngineFleet, EngineSpec } from "../fleet/engine-fleet.ts";
import type { EngineEvent } from "../fleet/engine-event.ts";
import type { TransferOptions } from "./transfer-options.ts";
import type { RoutersOptions } from "./routers-options.ts";
import type { ScalingOptions } from "./scaling-options.ts";
import type { SignalOptions } from "./signal-options.ts";
import type { ArrivalSource } from "./arrival-source.ts";

/** What becomes of the fleet and of the policies in the course of a run. */
export type FleetEvent = Exclude<ExogenousInput, { readonly kind: "request-arrived" | "block-size-changed" }>;

/** The same, and what happens to engines. */
export type ScriptEvent = FleetEvent | EngineEvent;

/** Time that requests and answers spend outside the engines. */
export interface Latency {
  /** From arrival to admission, and from there to the decision. */
  readonly admissionMicros: Micros;
  readonly routingMicros: Micros;
  /** From the decision until the engine has the request. */
  readonly requestMicros: Micros;
  /** From the engine until the router and the client have a token. */
  readonly answerMicros: Micros;
  /** Added to each token's and each answer's time as the client sees it, beside the engine's clock (BLIS's alpha2). */
  readonly perOutputTokenMicros: Micros;
  readonly afterLastTokenMicros: Micros;
}

export const NO_LATENCY: Latency = {
  admissionMicros: 0,
  routingMicros: 0,
  requestMicros: 0,
  answerMicros: 0,
  perOutputTokenMicros: 0,
  afterLastTokenMicros: 0,
};

/** Where the router knows prefixes from. */
export type PrefixSignal =
  /** From its own decisions, as live without KV events. */
  | { readonly kind: "approximate" }
  /**
   * From a copy of all engines' caches, made at the first decision after each delay; with delay 0 the caches
   * themselves.
   */
  | { readonly kind: "engine-caches"; readonly delayMicros: Micros }
  /** From the engines' KV events, each so long after its step. */
  | { readonly kind: "kv-events"; readonly delayMicros: Micros }
  /** From an index of the caller's. */
  | { readonly kind: "index"; create(fleet: EngineFleet): PrefixIndex };

export interface SimulationOptions {
  readonly router: Omit<RouterOptions, "index">;
  /** Several of them, in front of one fleet; one where it is left out. */
  readonly routers?: RoutersOptions;
  /** Endpoints at the start, in order of their numbers. */
  readonly engines: readonly EngineSpec[];
  /** Joins, leaves, cordons, new profiles and faults, in order of time; below 0, before anything else. */
  readonly fleetEvents?: readonly ScriptEvent[];
  /**
   * While a rollout of `fleetEvents` runs its judge looks so often, and the steps that it calls for are taken. Without it
   * no judge looks, and rollouts move by `fleetEvents` alone.
   */
  readonly rolloutLookMicros?: Micros;
  /** What is done about faults; the gateway's own defaults where they are left out. */
  readonly rules?: PathRules;
  /** The engine of an endpoint that joins later; the first engine's configuration where it is left out. */
  readonly engineOf?: (joined: FleetEvent & { readonly kind: "endpoint-joined" }) => EngineConfig;
  /** The number of engines follows the load; it stays as it is where this is left out. */
  readonly scaling?: ScalingOptions | undefined;
  readonly arrivals: ArrivalSource;
  readonly signals: SignalOptions;
  readonly prefixes: PrefixSignal;
  /** Scorers may look into engines, at copies as old as that at most; they cannot where it is left out. */
  readonly engineCaches?: { readonly delayMicros: Micros } | undefined;
  readonly latency: Latency;
  /** Between engines that compute prompts and those that answer; TRANSFER_DEFAULTS where they are left out. */
  readonly transfers?: TransferOptions;
  /** A gate in front of the router, by rules that are not the router's own; nothing is held back where it is left out. */
  readonly admission?: AdmissionPolicy;
  /** The request's own priority where it is left out. */
  readonly priority?: PriorityPolicy;
  /** From a first token on, the router is notified so often of how many there are; never where it is left out. */
  readonly progressMicros?: Micros;
  /** Nothing happens after it; Infinity for until all has ended. */
  readonly horizonMicros: Micros;
  /**
   * What becomes of tokens that engines have settled by the horizon and that would come after it: nothing (without), or
   * they are reported with their times. There are such only where requests complete when their last step starts.
   */
  readonly atHorizon?: "cut" | "reported";
  /**
   * When the router counts a request as over: with its answer, or when the engine gives its place back. One that its
   * engine refuses is over at once, or when the engine would have seen it, as an engine's doing.
   */
  readonly over: "answered" | "released";
  /** Record every gap between two tokens; it costs the engines' shortcut through decoding. */
  readonly tokenGaps: boolean;
  /** Notified of every step of every engine, by the engine's number. */
  readonly stepped?: (engine: number, startAt: Micros, endAt: Micros) => void;
  /** Verify the invariants of the simulation; `check` of an engine's configuration does so there. */
  readonly check: boolean;
  /** Endpoints that named requests must go to, if they may serve them. */
  readonly forced?: ReadonlyMap<string, EndpointId>;
  /** Sees every input after the router accepted it. */
  readonly observe?: (input: Input, decision: Decision | undefined) => void;
  /** Notified now and then of how far the run has come. */
  readonly progress?: (at: Micros, arrived: number, ended: number) => void;
}
