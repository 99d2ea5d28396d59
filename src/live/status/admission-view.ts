import type { LimitUse } from "#core/admission/limit-use.ts";
import type { Router } from "#core/router.ts";
import type { Micros } from "#core/base/units.ts";

/** Of a limit, those that are shown. */
const SUBJECTS_SHOWN = 20;

/** Who waits, and who has used how much of which limit; those nearest to it first. */
export function admissionView({ admission }: Pick<Router, "admission">, at: Micros) {
  const byClass = Object.fromEntries(Array.from(admission.waitingByBand(), ([band, count]) => [String(band), count]));
  return {
    queue: { requests: admission.waiting, byClass },
    limits: usesOf(admission, at).map(({ name, type, uses }) => ({
      name,
      type,
      subjects: new Set(uses.map(({ subject }) => subject)).size,
      most: uses
        .toSorted((a, b) => shareOf(b) - shareOf(a))
        .slice(0, SUBJECTS_SHOWN)
        .map(({ subject, of, used, max }) => ({
          subject: subject.replace("\n", "/"),
          of,
          used: Math.round(used),
          max,
        })),
    })),
  };
}

function usesOf({ limits, modelCap }: Router["admission"], at: Micros) {
  const uses = Array.from(limits, ([name, limit]) => ({ name, type: limit.name, uses: limit.uses(at) }));
  return modelCap === undefined ? uses : [...uses, { name: "modelCap", type: "model-cap", uses: modelCap.uses() }];
}

function shareOf({ used, max }: LimitUse): number {
  return max === 0 ? 1 : used / max;
}
