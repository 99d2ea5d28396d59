export const FAULTS = [
  "connect",
  "status",
  "saturated",
  "draining",
  "cut",
  "timeout",
  "garbage",
  "hung",
  "asleep",
] as const;

/** Why an endpoint could not serve. All but "saturated", "draining" and "asleep" speak against its health. */
export type Fault = (typeof FAULTS)[number];
