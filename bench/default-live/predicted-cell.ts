import { loadProfile } from "#config/profile-file.ts";
import { signalsOf } from "#config/profile-signals.ts";
import { MICROS_PER_MILLI, MICROS_PER_SECOND } from "#core/units.ts";
import { scrapedEvery } from "#sim/signal/scraped-every.ts";
import { simulate } from "#sim/simulate.ts";
import { WorkloadArrivals } from "#sim/source/workload-arrivals.ts";
import type { WorkloadRequest } from "#trace/workload-request.ts";
import type { Column } from "../default-choice/cell.ts";
import { PLAIN_CLUSTER } from "../plain-cluster.ts";
import { STALE_AFTER_INTERVALS } from "../profiles/case.ts";
import { fleetOf } from "../profiles/run-case.ts";
import { cellFigures } from "./cell-figures.ts";
import type { LiveCase } from "./live-case.ts";
import { WARM_UP_REQUESTS } from "./live-workload.ts";

/** Reading gauges more often would be the machine's main work. */
const SCRAPE_MILLIS_MIN = 25;

/** How often the gateway reads gauges under a profile, on the wall clock: as its own router does in the engines' time. */
export function scrapeMillisOf({ scrapeMillis, timeScale }: LiveCase, policy: string): number {
  const own = scrapeMillis ?? signalsOf(loadProfile(policy)).intervalMillis;
  return Math.max(SCRAPE_MILLIS_MIN, Math.round(own / timeScale));
}

/** What the simulator makes of the same requests, at the speed at which the gateway sees them, in the engines' time. */
export function predictedCell(
  one: LiveCase,
  seed: number,
  policy: string,
  requests: readonly WorkloadRequest[],
): Record<Column, number> {
  const { timeScale } = one;
  const faster = { windowMicros: MICROS_PER_SECOND, factors: Float64Array.of(1 / timeScale) };
  const engines = fleetOf(one).map(({ config, endpoint }) => ({
    config: { ...config, stepDrift: faster },
    // As a gateway has it, which no engine reports it to.
    endpoint: { ...endpoint, concurrencyMax: undefined },
  }));
  const { blockTokens } = engines[0]!.config;
  const scrapeMicros = scrapeMillisOf(one, policy) * MICROS_PER_MILLI;
  const { outcomes } = simulate({
    router: {
      seed,
      profiles: { [policy]: loadProfile(policy).spec },
      defaultProfile: policy,
      blockTokens,
      staleAfterMicros: STALE_AFTER_INTERVALS * scrapeMicros,
    },
    engines,
    arrivals: new WorkloadArrivals(requests, {
      seed,
      blockTokens,
      timeoutMicros: Infinity,
      timeScale: 1 / timeScale,
      rateScale: 1,
    }),
    signals: scrapedEvery(scrapeMicros),
    ...PLAIN_CLUSTER,
  });
  const rows = outcomes.ids.flatMap((id, row) =>
    Number(id.slice(id.indexOf("_") + 1)) >= WARM_UP_REQUESTS ? [row] : [],
  );
  const answered = rows
    .filter((row) => outcomes.isCompleted(row))
    .map((row) => ({
      ttftMicros: outcomes.ttft[row]! * timeScale,
      e2eMicros: outcomes.e2e[row]! * timeScale,
      outputTokens: outcomes.outputTokens[row]!,
    }));
  return cellFigures(answered, rows.length);
}
