import type { AdmissionSpec } from "#core/admission/admission-spec.ts";
import { ROLES_DEFAULT } from "#core/profile/profile-stages.ts";
import type { EngineConfig } from "#engine/config.ts";
import type { EngineEvent } from "#sim/fleet/engine-event.ts";
import type { FleetEvent } from "#sim/setting/simulation-options.ts";
import type { Micros } from "#core/base/units.ts";
import { ENGINE } from "./twin-rules.ts";

/** A request that streams; it shares nothing with others. */
export interface ScriptedRequest {
  readonly at: Micros;
  readonly promptTokens: number;
  readonly outputTokens: number;
}

export type ScriptedEvent =
  | EngineEvent
  | Extract<FleetEvent, { readonly kind: "endpoint-cordoned" | "endpoint-uncordoned" | "endpoint-left" }>;

/** What both hosts are put through. Endpoints are "a", "b", "c", ...; no two things happen at one time. */
export interface TwinScript {
  readonly endpoints: number;
  /** Of each of them, where some compute prompts for others; all do both where it is left out. */
  readonly roles?: readonly ("prefill" | "decode")[];
  /** Requests that an endpoint serves at once; the rest wait there. */
  readonly sequencesMax?: number;
  /** Time of an engine's step: long where answers last long, which every token is sent for. 20 ms where it is left out. */
  readonly stepMicros?: Micros;
  /** Everybody is let in where it is left out. */
  readonly admission?: AdmissionSpec;
  readonly requests: readonly ScriptedRequest[];
  readonly events: readonly ScriptedEvent[];
}

/** Every endpoint is such an engine. */
export function engineOf({ sequencesMax, stepMicros }: TwinScript): EngineConfig {
  const stepTime = { ...ENGINE.stepTime, ...(stepMicros !== undefined && { baseMicros: stepMicros }) };
  return { ...ENGINE, stepTime, ...(sequencesMax !== undefined && { sequencesMax }) };
}

export function labelsOf({ roles }: Pick<TwinScript, "roles">, number: number): Readonly<Record<string, string>> {
  const role = roles?.[number];
  return role === undefined ? {} : { [ROLES_DEFAULT.label]: role };
}

export function endpointId(number: number): string {
  return String.fromCodePoint(97 + number);
}
