import type { Hold } from "#engine/block-fetch.ts";
import type { EngineRequest } from "#engine/request.ts";
import type { Flight } from "./flight.ts";

/** A request as the engine has it that computes its prompt for another one: one token, and its blocks are held. */
export class PrefillLeg implements EngineRequest {
  readonly flight: Flight;
  readonly id: string;
  readonly promptTokens: number;
  readonly outputTokens = 1;
  readonly holds = true;
  readonly priority: number;
  readonly deadlineAt: number | undefined;
  readonly cacheRead: boolean;
  hashes: Int32Array = new Int32Array(0);
  /** Numbers of the engine that has it and of the one that answers. */
  readonly engine: number;
  readonly answers: number;
  /** The blocks, from its end until they are given back. */
  hold: Hold | undefined = undefined;
  cachedTokens = 0;
  /** The prompt is computed, and the request goes on. */
  isComputed = false;

  constructor(flight: Flight, engine: number, answers: number) {
    this.flight = flight;
    this.engine = engine;
    this.answers = answers;
    this.id = flight.id;
    this.promptTokens = flight.promptTokens;
    this.priority = flight.priority;
    this.deadlineAt = flight.deadlineAt;
    this.cacheRead = flight.cacheRead;
  }
}
