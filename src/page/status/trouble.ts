import { age } from "../part/format.ts";
import type { EndpointCard } from "./overview.ts";

/** 0 well, 1 to be looked at, 2 serves little or nothing, 3 serves nothing. */
export type Severity = 0 | 1 | 2 | 3;

export interface EndpointTrouble {
  readonly severity: Severity;
  /** Most serious first. */
  readonly signs: readonly string[];
  /** About the first of them; "" where nothing has to be done. */
  readonly todo: string;
}

/** What to do about signs that have a remedy, by how they begin. */
const REMEDIES: Readonly<Record<string, string>> = {
  lost: "See whether its engine still runs; it is let back by itself.",
  "not reached yet": "See whether its engine runs and its address is right.",
  hung: "Restart its engine; others serve meanwhile.",
  "breaker open": "Its engine's log has why its requests fail; it is tried again by itself.",
  "its health checks fail": "Its engine's log has why; it is let back by itself.",
  "ejected: its requests fail": "Its engine's log has why; it is let back by itself.",
  "ejected: its tokens are slow": "Look at its board; it is let back by itself.",
  cordoned: "Uncordon it where it may serve: gnomon endpoints uncordon.",
  signals: "Its /metrics answers late or not at all; decisions go by what was sent there.",
  "KV cache full": "Fewer requests at once, or more memory for its cache.",
  "never scraped": "Its /metrics has to be reachable from here.",
};

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
  return { severity: found[0]?.[0] ?? 0, signs: found.map(([, sign]) => sign), todo: todoOf(found[0]?.[1] ?? "") };
}

function todoOf(sign: string): string {
  return Object.entries(REMEDIES).find(([begin]) => sign.startsWith(begin))?.[1] ?? "";
}
