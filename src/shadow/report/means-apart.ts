import type { WhatIfAnswer } from "../question/what-if.ts";
import { METRICS } from "./figures-table.ts";

/** Of what one figure is from another, less their difference: a table has no more digits. */
const SAME_MICROS = 10;

/** Whether means do not subtract to differences: they have what single first tokens are late by, and those have not. */
export function areMeansApart({ candidates, inForce }: WhatIfAnswer): boolean {
  const base = candidates.find(({ name }) => name === inForce);
  return candidates.some(({ predicted, difference }) =>
    METRICS.some(([metric]) => {
      const [own, other, between] = [predicted[metric], base?.predicted[metric], difference[metric]];
      if (own === undefined || other === undefined || between === undefined) return false;
      return Math.abs(own.mean - other.mean - between.mean) > SAME_MICROS;
    }),
  );
}

/** For who reads differences below such means. */
export const MEANS_APART =
  "Means of the first table do not subtract to these: they include first tokens that are late and steps that wander, " +
  "while differences and sessions are of the runs without noise, and differences of requests that both answered.";
