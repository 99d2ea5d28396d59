import { Option } from "commander";
import { STAGE_SETTINGS } from "#core/stages.ts";
import { repeated } from "../flag/list-flag.ts";

export interface SetFlags {
  /** Texts key=value. */
  readonly set: readonly string[];
}

/** Keys of a gateway's configuration that a simulation has too; of a section, all in it. */
export const SIMULATED_KEYS: readonly string[] = [
  "admission",
  "routing.breaker",
  "routing.ejection",
  "routing.slowStart",
  "health",
  ...STAGE_SETTINGS.flatMap(([key, { isOfGateway }]) => (isOfGateway === true ? [] : [`limits.${key}`])),
  "limits.firstByteMillisMax",
  "limits.idleMillisMax",
  "limits.totalMillisMax",
  "limits.lostMillisMax",
  "limits.cutMillisMax",
  "limits.continueMillisMax",
  "limits.moveAgainMillis",
  "limits.writeStallMillisMax",
  "limits.sweepMillis",
  "scrape.timeoutMillis",
  "scrape.lostAfterMillis",
  "scrape.retryMillis",
  "scrape.retryMillisMax",
];

export function setOption(): Option {
  const meaning = "set a key of the gateway's configuration (repeat for more); one of";
  return new Option("--set <key=value>", `${meaning}: ${SIMULATED_KEYS.join(", ")}`)
    .argParser(repeated)
    .default([], "");
}
