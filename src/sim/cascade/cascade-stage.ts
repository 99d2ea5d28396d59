import { CascadeJudge } from "#core/cascade/cascade-judge.ts";
import { Cascade } from "#core/path/cascade/cascade.ts";
import { nameHash, randomFor } from "#core/base/random.ts";
import type { Micros } from "#core/base/units.ts";
import type { FinishReason } from "#engine/request.ts";
import type { Flight } from "../path/flight.ts";
import type { FlightPaths } from "../path/flight-paths.ts";
import type { Outcomes } from "../result/outcomes.ts";
import type { SimulationEvent } from "../path/simulation-event.ts";
import type { CascadeFigures, SimulatedCascade } from "../setting/cascade-options.ts";
import { confidenceDraw } from "./confidence-draw.ts";

/** The simulation as a cascade sees it. */
export interface CascadeSimulation {
  readonly clock: Micros;
  readonly outcomes: Outcomes;
  later(at: Micros, event: SimulationEvent): void;
  readonly paths: Pick<FlightPaths, "kept" | "askedAnew" | "router">;
  finished(at: Micros, flight: Flight, reason: FinishReason): void;
}

/**
 * The gateway's cascade in virtual time: an answer is held until so many tokens or its end have come, core judges it, and
 * it reaches the client or another model is asked from the beginning.
 */
export class CascadeStage {
  readonly #options: SimulatedCascade;
  readonly #seed: number;
  readonly #answerMicros: Micros;
  readonly #host: CascadeSimulation;
  readonly #desk: CascadeJudge;
  readonly #escalated: number[];
  readonly #kept: Record<string, number> = {};
  #requests = 0;

  constructor(options: SimulatedCascade, seed: number, answerMicros: Micros, host: CascadeSimulation) {
    this.#answerMicros = answerMicros;
    this.#options = options;
    this.#seed = seed;
    this.#host = host;
    this.#desk = new CascadeJudge(options);
    this.#escalated = options.spec.steps.map(() => 0);
  }

  /** It will be decided on for the first model. */
  arrived(flight: Flight): void {
    this.#requests++;
    flight.route = { ...flight.route, model: this.#options.spec.steps[0]!.model };
    const { spec } = this.#options;
    const { paths } = this.#host;
    const cascade = new Cascade(spec, this.#desk, { router: paths.router, now: () => this.#host.clock });
    flight.cascade = cascade;
    flight.hasStage(cascade);
    this.#judge(flight, cascade);
  }

  /** True where the engine's answer is complete and has yet to be judged; `finished` is called again if it is kept. */
  holds(at: Micros, flight: Flight, reason: FinishReason): boolean {
    if (flight.judged === undefined || (reason !== "stop" && reason !== "length")) return false;
    this.#later(at, flight, () => this.#host.finished(at, flight, reason));
    return true;
  }

  figures(): CascadeFigures {
    const [first = 0] = this.#escalated;
    return {
      escalated: this.#escalated.slice(0, -1),
      kept: this.#kept,
      escalatedShare: this.#requests === 0 ? 0 : first / this.#requests,
    };
  }

  /** Its answer is to be judged, unless it is the last model's. */
  #judge(flight: Flight, { judging }: Cascade): void {
    const tokens = this.#options.spec.judgedTokensMax;
    flight.judged = judging ? { tokens, ripe: (at) => this.#later(at, flight, () => {}) } : undefined;
  }

  /** When the gateway has that answer. `kept` follows where it is kept, or was before. */
  #later(at: Micros, flight: Flight, kept: () => void): void {
    const { engine } = flight;
    const take = (): void => {
      if (flight.engine === engine && !this.#gaveUp(flight)) kept();
    };
    // Never at once: an engine that reports a token is in the middle of its step.
    this.#host.later(at + this.#answerMicros, { kind: "judged", take });
  }

  #gaveUp(flight: Flight): boolean {
    const { cascade, judged, row, id: requestId } = flight;
    if (cascade === undefined || judged === undefined) return false;
    const { clock, outcomes } = this.#host;
    const { number: step } = cascade;
    const tokens = Math.max(1, outcomes.outputTokens[row]!);
    const random = randomFor(this.#seed, nameHash(`cascade ${step} ${requestId}`));
    const next = { ...flight.route, model: cascade.next!.model };
    const meanLogprob = confidenceDraw(this.#options.confidence[step]!, tokens, random);
    const after = cascade.judge(requestId, { meanLogprob, tokens }, next);
    if (after.kind === "keep") {
      this.#kept[after.why] = (this.#kept[after.why] ?? 0) + 1;
      flight.judged = undefined;
      // The client has its first byte now.
      outcomes.ttft[row] = clock - outcomes.arrivalAt[row]!;
      this.#host.paths.kept(flight);
      return false;
    }
    this.#escalated[step]!++;
    outcomes.again(row);
    flight.route = next;
    this.#judge(flight, cascade);
    this.#host.paths.askedAnew(flight, after.decision);
    return true;
  }
}
