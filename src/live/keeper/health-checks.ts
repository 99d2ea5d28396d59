import { Agent, type buildConnector } from "undici";
import {
  type CheckCounts,
  HealthChecker,
  type HealthCheckOptions,
  newCheckCounts,
  Turnstile,
} from "./health-checker.ts";
import type { CheckerOf } from "./probe-listener.ts";

/**
 * The active health checks of a fleet: so many at once, over connections of their own, so that no slow page delays
 * them.
 */
export class HealthChecks {
  readonly counts: CheckCounts = newCheckCounts();
  readonly checkerOf: CheckerOf;
  readonly #dispatcher: Agent;

  constructor(
    { concurrencyMax, ...options }: HealthCheckOptions & { readonly concurrencyMax: number },
    connect: buildConnector.connector,
  ) {
    const { counts } = this;
    const turnstile = new Turnstile(concurrencyMax);
    const dispatcher = new Agent({
      connections: 1,
      pipelining: 1,
      connect,
      allowH2: false,
    });
    this.#dispatcher = dispatcher;
    this.checkerOf = (server, judged, wanted) =>
      new HealthChecker({ ...options, ...server, dispatcher, turnstile, counts, judged, wanted });
  }

  async destroy(): Promise<void> {
    await this.#dispatcher.destroy();
  }
}
