import { MICROS_PER_SECOND } from "#core/base/units.ts";
import type { ForecastAccuracy, ForecastCounts } from "./forecast-accuracy.ts";
import type { Family, Row } from "./metric-state.ts";

export interface ForecastSources {
  /** Left out where nobody compares. */
  readonly forecasts?: Pick<ForecastAccuracy, "rows">;
}

const COUNTS: readonly (readonly [name: string, help: string, of: (counts: Readonly<ForecastCounts>) => number])[] = [
  ["requests_total", "Requests with both a forecast and a measured time.", ({ requests }) => requests],
  ["seconds_total", "Sum of the forecast times.", ({ forecastMicros }) => forecastMicros / MICROS_PER_SECOND],
  ["measured_seconds_total", "Sum of the measured times.", ({ measuredMicros }) => measuredMicros / MICROS_PER_SECOND],
  [
    "error_seconds_total",
    "Sum of the absolute errors of the forecasts.",
    ({ errorMicros }) => errorMicros / MICROS_PER_SECOND,
  ],
  [
    "error_ratio_total",
    "Sum of the absolute errors, each relative to the measured time.",
    ({ errorShares }) => errorShares,
  ],
];

/** How right the router's forecasts of TTFT and TPOT are: over the requests, errors and ratios are means. */
export function registerForecasts({ forecasts }: ForecastSources, family: Family, row: Row): void {
  for (const [name, help, of] of COUNTS) {
    family("counter", `endpoint_forecast_${name}`, `${help} By figure: ttft or tpot.`, () =>
      (forecasts?.rows() ?? []).flatMap(({ endpoint, figure, counts }) =>
        counts.requests === 0 ? [] : [row(of(counts), { endpoint, figure })],
      ),
    );
  }
}
