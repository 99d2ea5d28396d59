import { admissionSpec } from "#config/admission-spec.ts";
import { ConfigError } from "#config/config-error.ts";
import { breakerOptions } from "#config/breaker-options.ts";
import { endpointRules } from "#config/endpoint-rules.ts";
import { hangRules } from "#config/hang-rules.ts";
import { loadConfig } from "#config/load.ts";
import { type Override, overrideFromText } from "#config/override.ts";
import { pathText, problemLine } from "#config/problem.ts";
import { CONFIG_SCHEMA, type Config } from "#config/schema.ts";
import { schemaNode } from "#config/schema-node.ts";
import type { PathRules } from "#core/path/path-rules.ts";
import { stageSettings } from "#core/stages.ts";
import type { RouterOptions } from "#core/router.ts";
import { MICROS_PER_MILLI } from "#core/base/units.ts";
import { DEFAULT_LIMITS, waitLimits } from "#live/http/limits.ts";
import { SIMULATED_KEYS } from "./simulated-keys.ts";

/** What a gateway so configured would do about endpoints and faults, and whom it would let in. */
export interface SimulatedRules {
  readonly router: Pick<RouterOptions, "breaker" | "endpointRules" | "admission">;
  readonly rules: PathRules;
}

/** Of `key=value` texts; undefined where there are none. Throws ConfigError with every problem. */
export function simulatedRules(texts: readonly string[]): SimulatedRules | undefined {
  if (texts.length === 0) return undefined;
  const root = schemaNode(CONFIG_SCHEMA);
  const overrides: Override[] = [];
  const problems: string[] = [];
  for (const text of texts) {
    const override = overrideFromText(text, root);
    if ("message" in override) problems.push(problemLine(override));
    else if (isSimulated(pathText(override.path))) overrides.push(override);
    else problems.push(`--set: expected one of ${SIMULATED_KEYS.join(", ")}, got ${pathText(override.path)}`);
  }
  if (problems.length > 0) throw new ConfigError(problems);
  const config = loadConfig({ file: undefined, environment: {}, overrides });
  const rules = endpointRules(config);
  const admission = admissionSpec(config.admission);
  return {
    router: {
      breaker: breakerOptions(config),
      ...(rules && { endpointRules: rules }),
      ...(admission && { admission }),
    },
    rules: pathRules(config),
  };
}

function isSimulated(key: string): boolean {
  return SIMULATED_KEYS.some((one) => key === one || key.startsWith(`${one}.`));
}

/** What a gateway so configured does about faults, as the core takes it. */
export function pathRules(config: Pick<Config, "limits" | "health" | "scrape">): PathRules {
  const { limits, health, scrape } = config;
  const { check } = health;
  return {
    settings: stageSettings(limits),
    waits: waitLimits({ ...DEFAULT_LIMITS, ...limits, holdMillis: undefined }),
    hang: hangRules(health),
    servedUntilWell: health.servedUntilWell,
    lostAfterMicros: scrape.lostAfterMillis * MICROS_PER_MILLI,
    returns: {
      retryMicros: scrape.retryMillis * MICROS_PER_MILLI,
      retryMicrosMax: scrape.retryMillisMax * MICROS_PER_MILLI,
    },
    probeMicrosMax: scrape.timeoutMillis * MICROS_PER_MILLI,
    ...(check.enabled && {
      check: {
        intervalMicros: check.intervalMillis * MICROS_PER_MILLI,
        unhealthyAfter: check.unhealthyAfter,
        healthyAfter: check.healthyAfter,
      },
    }),
    sweepMicros: limits.sweepMillis * MICROS_PER_MILLI,
  };
}
