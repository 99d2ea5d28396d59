import { Cascade } from "#core/path/cascade/cascade.ts";
import { CascadeJudge, type CascadeLimits, type CascadeSpec } from "#core/path/cascade/cascade-judge.ts";
import { nameHash, randomFor } from "#core/base/random.ts";
import type { Micros } from "#core/base/units.ts";
import type { FinishReason } from "#engine/request.ts";
import type { Flight, JudgedFlight } from "../path/flight.ts";
import type { SimulatedStage, StagedOptions, StageFigures, StageHost } from "../path/stage-performer.ts";
import { type Confidence, confidenceDraw } from "./confidence-draw.ts";

/** Every request asks for one cascade. An answer has the same length whichever model gives it. */
export interface SimulatedCascade extends CascadeLimits {
  readonly spec: CascadeSpec;
  /** Of each step, in order; the last one's is never asked for. */
  readonly confidence: readonly Confidence[];
}

/** What became of the answers. */
export interface CascadeFigures {
  /** Answers that were given up, by step. */
  readonly escalated: readonly number[];
  /** Answers that were kept, by reason; those of the last step are not among them. */
  readonly kept: Readonly<Record<string, number>>;
  /** Of all requests, those that left their first model. */
  readonly escalatedShare: number;
}

/**
 * The gateway's cascade in virtual time: an answer is held until so many tokens or its end have come, core judges it, and
 * it reaches the client or another model is asked from the beginning.
 */
class CascadeStage implements SimulatedStage {
  readonly #options: SimulatedCascade;
  readonly #seed: number;
  readonly #answerMicros: Micros;
  readonly #host: StageHost;
  readonly #desk: CascadeJudge;
  readonly #escalated: number[];
  readonly #kept: Record<string, number> = {};
  #requests = 0;

  constructor(options: SimulatedCascade, seed: number, answerMicros: Micros, host: StageHost) {
    this.#answerMicros = answerMicros;
    this.#options = options;
    this.#seed = seed;
    this.#host = host;
    this.#desk = new CascadeJudge(options);
    this.#escalated = options.spec.steps.map(() => 0);
  }

  arrived(flight: Flight): void {
    this.#requests++;
    flight.route = { ...flight.route, model: this.#options.spec.steps[0]!.model };
    const { spec } = this.#options;
    const { paths } = this.#host;
    const cascade = new Cascade(spec, this.#desk, { router: paths.router, now: () => this.#host.clock });
    flight.hasStage(cascade);
    this.#judge(flight, cascade);
  }

  holds(at: Micros, flight: Flight, reason: FinishReason): boolean {
    if (flight.judged === undefined || (reason !== "stop" && reason !== "length")) return false;
    this.#later(at, flight, () => this.#host.finished(at, flight, reason));
    return true;
  }

  figures(): StageFigures {
    const [first = 0] = this.#escalated;
    const figures: CascadeFigures = {
      escalated: this.#escalated.slice(0, -1),
      kept: this.#kept,
      escalatedShare: this.#requests === 0 ? 0 : first / this.#requests,
    };
    return { name: "cascade", figures };
  }

  /** Its answer is to be judged, unless it is the last model's. */
  #judge(flight: Flight, cascade: Cascade): void {
    const tokens = this.#options.spec.judgedTokensMax;
    const judged: UnjudgedAnswer = { cascade, tokens, ripe: (at) => this.#later(at, flight, () => {}) };
    flight.judged = cascade.judging ? judged : undefined;
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
    const { judged, row, id: requestId } = flight;
    if (judged === undefined) return false;
    const { cascade } = judged as UnjudgedAnswer;
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

/** Of a flight whose answer under way is to be judged. */
interface UnjudgedAnswer extends JudgedFlight {
  readonly cascade: Cascade;
}

/** All requests of a simulation ask for this cascade. */
export function simulatedCascade(options: SimulatedCascade): NonNullable<StagedOptions["stages"]>[number] {
  return (host, { router, latency }) => new CascadeStage(options, router.seed, latency.answerMicros, host);
}
