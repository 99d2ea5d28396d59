export const FAULTS = ["connect", "status", "saturated", "draining", "cut", "timeout", "garbage", "hung"] as const;

/** Why an endpoint could not serve. All but "saturated" and "draining" speak against its health. */
export type Fault = (typeof FAULTS)[number];
