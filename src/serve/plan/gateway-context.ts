import type { Logger } from "pino";
import type { ServePlan } from "./serve-plan.ts";

export type Environment = Readonly<Record<string, string | undefined>>;

/** What a gateway is started with. */
export interface GatewayContext {
  readonly plan: ServePlan;
  readonly environment: Environment;
  readonly log: Logger;
  readonly logLinesDropped: () => number;
  /** Aborted, with the signal's name, once the gateway is asked to stop. */
  readonly leaving: AbortSignal;
}
