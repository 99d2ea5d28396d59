import { PATH_RULES } from "#core/path/path-rules.ts";
import { MICROS_PER_MILLI } from "#core/base/units.ts";
import { EXPOSITION_BYTES_MAX_DEFAULT } from "../scrape/exposition.ts";
import { SCRAPE_INTERVAL_MILLIS_DEFAULT, SCRAPE_TIMEOUT_MILLIS_DEFAULT } from "../scrape/scrape.ts";

/** Bounds and intervals of looking after servers. */
export interface KeeperTimes {
  readonly scrapeIntervalMillis: number;
  readonly scrapeTimeoutMillis: number;
  /** Between two reads of /v1/models, for adapters that come and go. */
  readonly modelsIntervalMillis: number;
  /** A server to which no connection could be made for this long is lost. */
  readonly lostAfterMillis: number;
  /** Pause after the first unanswered question to a server that is not ready; doubles up to the maximum. */
  readonly retryMillis: number;
  readonly retryMillisMax: number;
  /** Of one metrics page; a larger one counts as a scrape that failed. */
  readonly pageBytesMax: number;
}

export const KEEPER_TIMES_DEFAULT: KeeperTimes = {
  scrapeIntervalMillis: SCRAPE_INTERVAL_MILLIS_DEFAULT,
  scrapeTimeoutMillis: SCRAPE_TIMEOUT_MILLIS_DEFAULT,
  modelsIntervalMillis: 30_000,
  lostAfterMillis: PATH_RULES.lostAfterMicros / MICROS_PER_MILLI,
  retryMillis: PATH_RULES.returns.retryMicros / MICROS_PER_MILLI,
  retryMillisMax: PATH_RULES.returns.retryMicrosMax / MICROS_PER_MILLI,
  pageBytesMax: EXPOSITION_BYTES_MAX_DEFAULT,
};
