import { InvalidArgumentError } from "commander";
import { ConfigError } from "#config/config-error.ts";
import { MICROS_PER_SECOND } from "#core/base/units.ts";
import type { EngineEvent } from "#sim/fleet/engine-event.ts";

/** An endpoint whose engine is killed, and perhaps started again. Seconds from the first arrival. */
export interface LostEndpoint {
  readonly endpoint: string;
  readonly atSeconds: number;
  readonly backSeconds: number | undefined;
}

export const LOSE_FLAG = "--lose <endpoint@seconds>";
export const LOSE_MEANING =
  "kill the endpoint's engine so many seconds after the first arrival: its requests break, and new ones fail there until " +
  "the loss is noticed; endpoint@from-to restarts it with an empty cache; repeat for more";

const FORM = /^(.+)@(\d+(?:\.\d+)?)(?:-(\d+(?:\.\d+)?))?$/;
const SECONDS_MAX = 1e9;

/** One value of --lose beside those before it. */
export function lostEndpoints(text: string, before: readonly LostEndpoint[]): readonly LostEndpoint[] {
  const [, endpoint, from, to] = FORM.exec(text) ?? [];
  const lost = {
    endpoint: endpoint ?? "",
    atSeconds: Number(from),
    backSeconds: to === undefined ? undefined : Number(to),
  };
  if (endpoint === undefined || !(lost.atSeconds <= SECONDS_MAX) || !((lost.backSeconds ?? 0) <= SECONDS_MAX))
    throw new InvalidArgumentError(
      `expected endpoint@seconds or endpoint@from-to, such as endpoint-1@20 (to ${SECONDS_MAX} s)`,
    );
  if (lost.backSeconds !== undefined && lost.backSeconds <= lost.atSeconds)
    throw new InvalidArgumentError("expected a time of return after that of the loss");
  return [...before, lost];
}

/** What happens to engines by it. Throws ConfigError where an endpoint is none of `endpoints`. */
export function faultsOf(lost: readonly LostEndpoint[], endpoints: readonly string[]): EngineEvent[] {
  const unknown = lost.find(({ endpoint }) => !endpoints.includes(endpoint));
  if (unknown !== undefined) {
    const known = endpoints.length > NAMED_MAX ? [...endpoints.slice(0, NAMED_MAX), "..."] : endpoints;
    throw new ConfigError([`--lose: expected an endpoint of ${known.join(", ")}, got ${unknown.endpoint}`]);
  }
  return lost.flatMap(({ endpoint, atSeconds, backSeconds }): EngineEvent[] => [
    { kind: "engine-killed", at: Math.round(atSeconds * MICROS_PER_SECOND), endpoint },
    ...(backSeconds === undefined
      ? []
      : [{ kind: "engine-started", at: Math.round(backSeconds * MICROS_PER_SECOND), endpoint } as const]),
  ]);
}

/** As people name it: "a lost at 20 s, back at 50 s". */
export function lostText(lost: readonly LostEndpoint[]): string {
  return lost
    .map(({ endpoint, atSeconds, backSeconds }) => {
      return `${endpoint} lost at ${atSeconds} s${backSeconds === undefined ? "" : `, back at ${backSeconds} s`}`;
    })
    .join(", ");
}

const NAMED_MAX = 8;
