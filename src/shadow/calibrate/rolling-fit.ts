import type { EngineConfig } from "#engine/config.ts";
import type { StepResiduals } from "#engine/step-drift.ts";
import type { RecordedRun } from "../recorded/recorded-run.ts";
import { type Calibration, CannotIdentify, calibrateInSteps, heldOutFrom } from "./calibrate.ts";
import { engineSizes } from "./engine-sizes.ts";
import { type Evidence, evidenceOf } from "./evidence.ts";
import { fitLoss } from "./fit-loss.ts";
import type { FitOutcome, FitReport } from "./fit-report.ts";
import { forcedReplay } from "./forced-replay.ts";
import { calibrateUnstated } from "./found-scheduling.ts";
import { type ModelError, modelErrorOf } from "./model-error.ts";
import { parametersOfEngine } from "./parameters.ts";

/** Answered requests without which nothing is tried. */
const REQUESTS_MIN = 80;
/** First part of a window that is load only: what filled the caches before it, and was in flight, is not in it. */
const BURN_IN_PART = 0.2;
/** Replays of the window that one fit may take; a usual one takes 50 to 100. */
const EVALUATIONS_MAX = 600;
/** Endpoints whose errors are reported one by one. */
const ENDPOINTS_REPORTED_MAX = 64;

/** An engine model that follows the traffic: fitted again and again, and replaced only by one that predicts no worse. */
export class RollingFit {
  readonly #requestsMax: number;
  #engine: EngineConfig;
  #residuals: StepResiduals | undefined;
  /** A fit has found whether the engine composes its steps ahead. */
  #isScheduled = false;

  /** `requestsMax`: latest requests of a window that are fitted and tested. */
  constructor(start: EngineConfig, requestsMax: number, residuals?: StepResiduals) {
    this.#engine = start;
    this.#residuals = residuals;
    this.#requestsMax = requestsMax;
  }

  get engine(): EngineConfig {
    return this.#engine;
  }

  get residuals(): StepResiduals | undefined {
    return this.#residuals;
  }

  /** One attempt on a window. Yields after every replay of it. Never throws. */
  *attempt(run: RecordedRun): Generator<void, FitReport> {
    const { sizes, notes } = engineSizes(this.#engine, run);
    this.#engine = sizes;
    const evidence = latest(evidenceOf(run, sizes.blockTokens), this.#requestsMax);
    const common = { requests: evidence.rows.length, left: evidence.left };
    const kept = (
      outcome: FitOutcome,
      detail: readonly string[],
      tested?: Tested,
      refused?: ModelError,
    ): FitReport => ({
      ...common,
      outcome,
      detail: [...detail, ...notes],
      engine: this.#engine,
      residuals: this.#residuals,
      parameters: parametersOfEngine(this.#engine),
      errors: {},
      heldOut: tested?.heldOut,
      heldOutByEndpoint: tested?.heldOutByEndpoint ?? {},
      heldOutRefused: refused,
    });
    const answered = evidence.rows.filter(({ ok }) => ok).length;
    if (answered < REQUESTS_MIN)
      return kept("few-requests", [`expected ${REQUESTS_MIN} answered streams after the first fifth, got ${answered}`]);
    const current = tested(evidence, this.#engine);
    yield;
    const fit = yield* fitted(evidence, sizes, this.#isScheduled || run.header.engine?.asyncScheduling !== undefined);
    if ("outcome" in fit) return kept(fit.outcome, fit.detail, current);
    const loss = fitLoss(fit.heldOut);
    // Without a figure of each kind among those held out, nothing speaks for the fit.
    if (!Number.isFinite(loss) || loss > fitLoss(current.heldOut)) {
      const detail = `held out: ${percent(loss)} off, the engine in use ${percent(fitLoss(current.heldOut))}`;
      return kept("worse", [detail, ...fit.caveats], current, fit.heldOut);
    }
    this.#engine = fit.engine;
    this.#residuals = fit.residuals;
    this.#isScheduled = true;
    return { ...kept("accepted", fit.caveats, fit), errors: fit.errors };
  }
}

interface Turned {
  readonly outcome: FitOutcome;
  readonly detail: readonly string[];
}

function* fitted(evidence: Evidence, sizes: EngineConfig, isScheduled: boolean): Generator<void, Calibration | Turned> {
  try {
    const steps = isScheduled ? calibrateInSteps(evidence, { sizes }) : calibrateUnstated(evidence, { sizes });
    for (let evaluations = 0; evaluations < EVALUATIONS_MAX; evaluations++) {
      const { done, value } = steps.next();
      if (done === true) return "calibration" in value ? value.calibration : value;
      yield;
    }
    return { outcome: "too-long", detail: [`no fit after ${EVALUATIONS_MAX} replays of the window`] };
  } catch (error) {
    if (error instanceof CannotIdentify) return { outcome: "not-identified", detail: error.reasons };
    return { outcome: "failed", detail: [error instanceof Error ? error.message : String(error)] };
  }
}

/** The latest requests, of which the first ones are load only. */
function latest({ rows, ...rest }: Evidence, requestsMax: number): Evidence {
  const kept = rows.slice(-requestsMax);
  const burnIn = Math.floor(BURN_IN_PART * kept.length);
  return { ...rest, rows: kept.map((row, i) => (i < burnIn ? { ...row, ok: false } : row)) };
}

interface Tested {
  readonly heldOut: ModelError;
  readonly heldOutByEndpoint: Readonly<Record<string, ModelError>>;
}

function tested(evidence: Evidence, engine: EngineConfig): Tested {
  const { rows, endpoints } = evidence;
  const outcome = forcedReplay(evidence, engine);
  const from = heldOutFrom(evidence, {});
  const heldOutByEndpoint = Object.fromEntries(
    endpoints
      .slice(0, ENDPOINTS_REPORTED_MAX)
      .map((id, number) => [
        id,
        modelErrorOf(evidence, outcome, (row) => row >= from && rows[row]!.endpoint === number),
      ]),
  );
  return { heldOut: modelErrorOf(evidence, outcome, (row) => row >= from), heldOutByEndpoint };
}

function percent(part: number): string {
  return `${(100 * part).toFixed(1)} %`;
}
