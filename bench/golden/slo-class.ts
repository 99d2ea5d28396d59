/** Priorities of BLIS's classes of service: greater is more urgent, below 0 may be shed. */
const PRIORITIES: Readonly<Record<string, number>> = {
  critical: 4,
  standard: 3,
  batch: -1,
  sheddable: -2,
  background: -3,
};

export const SLO_URGENCY_MAX = 4;

/** A class that is not named counts as standard. */
function sloPriority(sloClass: string): number {
  return (Object.hasOwn(PRIORITIES, sloClass) ? PRIORITIES[sloClass] : undefined) ?? 3;
}

/** The priority inside an engine, where a smaller number is more urgent. */
export function enginePriority(sloClass: string): number {
  return SLO_URGENCY_MAX - sloPriority(sloClass);
}
