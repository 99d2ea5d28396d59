import { ConfigError } from "#config/config-error.ts";
import type { ParameterValue } from "#core/plugin/spec.ts";

/**
 * Values by dotted paths as mappings in mappings. Throws ConfigError where a path goes on below a value; `at` leads to
 * them.
 */
export function nested(at: string, parameters: Readonly<Record<string, ParameterValue>>): Record<string, unknown> {
  const given: Record<string, unknown> = {};
  for (const [path, value] of Object.entries(parameters)) {
    let inside = given;
    const keys = path.split(".");
    for (const key of keys.slice(0, -1)) {
      const next = Object.hasOwn(inside, key) ? inside[key] : (inside[key] = {});
      if (typeof next !== "object" || next === null)
        throw new ConfigError([`${at}.${path}: expected no value at ${at}.${key} beside it`]);
      inside = next as Record<string, unknown>;
    }
    inside[keys.at(-1)!] = value;
  }
  return given;
}
