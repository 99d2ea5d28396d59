import { ConfigError } from "#config/config-error.ts";
import { MICROS_PER_MILLI } from "#core/base/units.ts";
import type { SloTarget, SloTargets } from "#sim/result/slo.ts";

/** Reads `critical:200:50:,batch:::60000`: milliseconds of TTFT, TPOT and E2E by class. */
export function parseSlo(text: string): SloTargets {
  return Object.fromEntries(
    text.split(",").map((part): [string, SloTarget] => {
      const [sloClass = "", ...millis] = part.trim().split(":");
      const values = millis.map((one) => (one === "" ? undefined : Number(one) * MICROS_PER_MILLI));
      if (values.length !== 3 || values.some((value) => value !== undefined && !(value > 0))) {
        throw new ConfigError([`--slo: expected class:ttft:tpot:e2e in milliseconds, got ${JSON.stringify(part)}`]);
      }
      const [ttftMicros, tpotMicros, e2eMicros] = values;
      return [
        sloClass,
        {
          ...(ttftMicros !== undefined && { ttftMicros }),
          ...(tpotMicros !== undefined && { tpotMicros }),
          ...(e2eMicros !== undefined && { e2eMicros }),
        },
      ];
    }),
  );
}
