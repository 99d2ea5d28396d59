import type { EngineConfig } from "#engine/config.ts";
import { type Candidate, type CandidateOutcome, type Setting, spanOf } from "../candidate/candidate.ts";
import { replicaEngines } from "../candidate/replica.ts";
import type { PredictedTimes } from "../job/simulated-rollout.ts";

/** The engines that predictions come from, where no calibration states how far it may be off: a tenth slower. */
const PREDICTED_SLOWER = 1.1;

/** The control as a simulator predicts it whose engines are not quite those that serve. */
export function predictingCandidate(setting: Setting, control: Candidate): Candidate {
  const engine = predictingEngine(setting);
  return { ...control, scenario: { label: "predicted", engine, residuals: undefined } };
}

/** One that is off as a calibration may be: drawn from its residuals where there are any. */
function predictingEngine(setting: Setting): EngineConfig {
  const { engine, residuals, seed } = setting;
  if (residuals !== undefined) return replicaEngines(engine, residuals, seed, 1, spanOf(setting))(0);
  const { stepTime } = engine;
  if (stepTime.kind !== "coefficients") return engine;
  const { baseMicros, perPrefillTokenMicros, perDecodeMicros } = stepTime;
  return {
    ...engine,
    stepTime: {
      ...stepTime,
      baseMicros: PREDICTED_SLOWER * baseMicros,
      perPrefillTokenMicros: PREDICTED_SLOWER * perPrefillTokenMicros,
      perDecodeMicros: PREDICTED_SLOWER * perDecodeMicros,
    },
  };
}

/** In shared memory, since every simulated rollout is given them. */
export function predictedTimes({ ttftMicros, tpotMicros, e2eMicros }: CandidateOutcome): PredictedTimes {
  const shared = (column: Float64Array) => {
    const copy = new Float64Array(new SharedArrayBuffer(column.byteLength));
    copy.set(column);
    return copy;
  };
  return { ttft: shared(ttftMicros), tpot: shared(tpotMicros), e2e: shared(e2eMicros) };
}
