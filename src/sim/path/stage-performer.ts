import type { Fault } from "#core/endpoint/fault.ts";
import type { Routed } from "#core/input/decision.ts";
import type { PathRouter } from "#core/path/path-router.ts";
import type { PathRules } from "#core/path/path-rules.ts";
import type { PathStage } from "#core/path/stage.ts";
import type { Micros } from "#core/base/units.ts";
import type { Hold } from "#engine/block-fetch.ts";
import type { FinishReason } from "#engine/request.ts";
import type { EngineFleet } from "../fleet/engine-fleet.ts";
import type { Outcomes } from "../result/outcomes.ts";
import type { SimulationOptions } from "../setting/simulation-options.ts";
import type { EngineObserver } from "./engine-observer.ts";
import type { Flight } from "./flight.ts";
import type { FlightPaths } from "./flight-paths.ts";
import type { PrefillLeg } from "./prefill-leg.ts";
import type { SimulationEvent } from "./simulation-event.ts";

/** What a second flight of the same request is, while it is not known which of both answers. */
export interface Standby {
  /** Its row among the outcomes of such flights. */
  readonly row: number;
  /** Its first token is here. */
  began(): void;
  failed(fault?: Fault): void;
}

/** Of a flight beside which a second one may be. */
export interface SecondOf {
  /** While two engines have the request. */
  readonly flight: Flight | undefined;
}

/** The simulation as performers of stages see it. */
export interface StageHost {
  readonly clock: Micros;
  readonly fleet: EngineFleet;
  readonly outcomes: Outcomes;
  readonly observer: EngineObserver;
  readonly paths: FlightPaths;
  /** Something that is due then. */
  later(at: Micros, event: SimulationEvent): void;
  /** An engine is done with it. */
  finished(at: Micros, flight: Flight, reason: FinishReason): void;
  /** It is on its way to its engine. */
  carry(flight: Flight): void;
  /** Those in flight are looked at now and then, second ones among them. */
  readonly desk: { arrived(flight: Flight): void; departed(flight: Flight): void } | undefined;
}

/** Makes the stage of an answer that breaks and may go on elsewhere; undefined where the rules have none go on. */
export type OnwardPerformer = (
  paths: FlightPaths,
) => ((flight: Flight, paths: FlightPaths) => PathStage & { readonly times: number }) | undefined;

/** What performs a stage in a simulation, of each flight that may fail, from its arrival on. */
export interface StagePerformer {
  /** Undefined where such rules never need it. */
  performs(rules: PathRules): ((flight: Flight, host: StageHost) => void) | undefined;
}

/** The simulation as whoever has a part of flights done ahead sees it. */
export interface AheadHost {
  readonly clock: Micros;
  readonly fleet: EngineFleet;
  readonly outcomes: Outcomes;
  later(at: Micros, event: SimulationEvent): void;
  answer(at: Micros, event: SimulationEvent): void;
  readonly paths: { readonly router: PathRouter };
}

/** Has an engine do a part of a flight ahead of the one that answers, where its decision names one. */
export interface AheadOfFlights {
  /** A decision sends it on its way: the number of the engine that it goes to first. */
  begin(flight: Flight, decision: Routed): number;
  /** An engine holds the blocks of a prompt that it computed. */
  held(at: Micros, leg: PrefillLeg, hold: Hold): void;
  /** It is done with the prompt; the gateway gets to know. */
  computed(at: Micros, leg: PrefillLeg): void;
  /** The prompt is computed: the request goes to the engine that answers. */
  sendOn(flight: Flight): void;
  /** It goes elsewhere by another decision. */
  leaves(flight: Flight, decision: Routed): void;
  /** An attempt is over, or the request is. */
  dropped(flight: Flight): void;
  /** Undefined where no profile has it. */
  figures(): StageFigures | undefined;
  /** What must hold at the end of a run, with so many requests open. */
  verify(open: number): void;
}

/** A stage of all flights of one simulation. */
export interface SimulatedStage {
  /** A request is there, and will be decided on. */
  arrived(flight: Flight): void;
  /** True where an engine's answer is complete and has yet to be judged; `finished` is called again if it is kept. */
  holds(at: Micros, flight: Flight, reason: FinishReason): boolean;
  figures(): StageFigures;
}

/** What a stage came to, by the name that results have it under. */
export interface StageFigures {
  readonly name: string;
  readonly figures: object;
}

/** A simulation with stages that whoever asks for it brings. */
export interface StagedOptions extends SimulationOptions {
  readonly stages?: readonly ((host: StageHost, options: SimulationOptions) => SimulatedStage)[];
}
