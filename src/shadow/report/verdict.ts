import type { WhatIfAnswer } from "../question/what-if.ts";
import { percent, signedPercent } from "./markup.ts";

/** A model that is further off than this should be calibrated before it is asked. */
const ERROR_MAX = 0.25;

/** The answer in a sentence or two, no surer than the intervals and the model's error allow. Plain text. */
export function verdict({ candidates, inForce, modelError, ranking }: WhatIfAnswer): string {
  const base = candidates.find(({ name }) => name === inForce)?.predicted.e2eMicros?.mean;
  const best = candidates.find(({ name, scenario }) => name !== inForce && scenario === "");
  if (base === undefined || best === undefined) return `Only ${inForce} was simulated as things were.`;
  const difference = best.difference.e2eMicros;
  if (difference === undefined) return `No request can be compared with ${inForce}.`;
  const may = best.differenceInterval.e2eMicros ?? difference;
  const [low, high] = [Math.min(difference.low, may.low), Math.max(difference.high, may.high)];
  const share = `${signedPercent(difference.mean / base)} mean E2E [${signedPercent(low / base)}, ${signedPercent(high / base)}]`;
  const error = modelError?.e2eMicros?.meanRelative;
  const trust = trustIn(error, inForce);
  if (low <= 0 && high >= 0)
    return `No candidate differs from ${inForce} beyond chance; the nearest to a gain is ${best.name}, ${share}. ${trust}`;
  if (difference.mean > 0) return `${inForce} stays best; next is ${best.name}, ${share}. ${trust}`;
  const isSmall = error !== undefined && Math.abs(difference.mean / base) < Math.abs(error);
  const hedge = isSmall ? " That is less than the model's own error, which mostly hits both alike." : "";
  const leads = `It leads in ${percent(ranking.first[candidates.indexOf(best)] ?? NaN, 0)} of the draws.`;
  return `${best.name} would have been better than ${inForce}: ${share}. ${leads} ${trust}${hedge}`;
}

function trustIn(error: number | undefined, inForce: string): string {
  if (error === undefined) return "How far the model can be trusted is not known: this traffic was not observed.";
  const off = `The model is ${percent(Math.abs(error))} off on the mean E2E of ${inForce} itself.`;
  return Math.abs(error) > ERROR_MAX ? `${off} Calibrate an engine on this trace before you believe it.` : off;
}
