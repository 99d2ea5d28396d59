import { age } from "../part/format.ts";
import type { EndpointCard } from "./overview.ts";

/** 0 well, 1 to be looked at, 2 serves little or nothing, 3 serves nothing. */
export type Severity = 0 | 1 | 2 | 3;

export interface EndpointTrouble {
  readonly severity: Severity;
  /** Most serious first. */
  readonly signs: readonly string[];
}

const KV_FULL = 0.95;
const EJECTED = {
  "": "",
  asleep: "asleep",
  unhealthy: "its health checks fail",
  failures: "ejected: its requests fail",
  slow: "ejected: its tokens are slow",
} as const;

/** What is wrong with an endpoint, in a few words each. */
export function troubleOf({ state, detail, known, scrapeError }: EndpointCard): EndpointTrouble {
  const found: (readonly [Severity, string])[] = [];
  const note = (holds: boolean, severity: Severity, sign: string): void => {
    if (holds) found.push([severity, sign]);
  };
  note(state === "lost", 3, detail === "" ? "lost" : `lost: ${detail}`);
  note(state === "waiting", 3, detail === "" ? "not reached yet" : `not reached yet: ${detail}`);
  if (known !== null) {
    note(known.standing === "hung", 3, "hung");
    note(known.breaker === "open", 2, "breaker open");
    note(known.breaker === "half-open", 2, "breaker half-open");
    note(known.ejected !== "", known.ejected === "asleep" ? 1 : 2, EJECTED[known.ejected]);
    note(known.share < 1, 1, `starts slowly, ${Math.round(known.share * 100)} %`);
    note(known.standing === "returning", 1, "let back slowly");
    note(known.cordoned, 1, "cordoned");
    if (state === "ready") {
      note(known.freshness === "stale", 1, `signals ${age(known.ageMillis)} old`);
      note(known.freshness === "unknown", 1, "never scraped");
      note(known.kvUtilization >= KV_FULL, 1, "KV cache full");
    }
  }
  note(scrapeError !== "" && known?.freshness !== "fresh", 1, `scrape: ${scrapeError}`);
  note(state === "ready" && detail !== "", 1, detail);
  found.sort(([a], [b]) => b - a);
  return { severity: found[0]?.[0] ?? 0, signs: found.map(([, sign]) => sign) };
}
