import type Table from "cli-table3";
import type { Calibration } from "#shadow/calibrate/calibrate.ts";
import type { ModelError } from "#shadow/calibrate/model-error.ts";
import { PARAMETERS } from "#shadow/calibrate/parameters.ts";
import type { PredictionError } from "#shadow/figure/figures.ts";
import { figureTable, millisOf, signedPercentOf } from "../output/figure-text.ts";
import { heldOutSentence } from "./held-out-sentence.ts";

const METRICS = [
  ["ttftMicros", "TTFT"],
  ["tpotMicros", "TPOT"],
  ["e2eMicros", "E2E"],
] as const;

/** The fit for people: parameters with their uncertainty, and the error on what was fitted and on what was not. */
export function calibrateTable(calibration: Calibration): string {
  const { parameters, errors, trained, heldOut, heldOutByEndpoint } = calibration;
  const fitted = figureTable(["parameter", "microseconds", "standard error"]);
  for (const name of PARAMETERS) {
    const error = errors[name];
    const uncertainty =
      error === undefined ? (parameters[name] > 0 ? "given" : "not seen") : errorText(parameters[name], error);
    fitted.push([name, parameters[name].toPrecision(5), uncertainty]);
  }
  const table = errorTable();
  rows(table, "held out", heldOut);
  rows(table, "fitted", trained);
  const endpoints = Object.entries(heldOutByEndpoint);
  if (endpoints.length > 1) for (const [endpoint, error] of endpoints) rows(table, `held out, ${endpoint}`, error);
  return `${fitted.toString()}\n${SIMULATED}\n${table.toString()}\n${heldOutSentence(heldOut)}\n`;
}

/** The error of an engine that was not fitted here. */
export function evaluationTable(error: ModelError, byEndpoint: Readonly<Record<string, ModelError>>): string {
  const table = errorTable();
  rows(table, "all", error);
  const endpoints = Object.entries(byEndpoint);
  if (endpoints.length > 1) for (const [endpoint, one] of endpoints) rows(table, endpoint, one);
  return `${SIMULATED}\n${table.toString()}\n`;
}

const SIMULATED = "Simulated where and when the real engines had each request, in milliseconds:";

function errorTable(): Table.Table {
  const errors = ["mean", "p50", "p90", "p99", "MAPE", "r", "requests"];
  return figureTable(["", "", "predicted mean", "observed mean", ...errors]);
}

function rows(table: Table.Table, name: string, error: ModelError): void {
  METRICS.forEach(([metric, label], i) => {
    const one = error[metric];
    if (one !== undefined) table.push([i === 0 ? name : "", label, ...cells(one)]);
  });
}

function cells(error: PredictionError): string[] {
  return [
    millisOf(error.predictedMean),
    millisOf(error.observedMean),
    signedPercentOf(error.meanRelative),
    signedPercentOf(error.p50Relative),
    signedPercentOf(error.p90Relative),
    signedPercentOf(error.p99Relative),
    `${(100 * error.mape).toFixed(1)} %`,
    Number.isNaN(error.correlation) ? "-" : error.correlation.toFixed(3),
    String(error.pairs),
  ];
}

function errorText(value: number, error: number): string {
  if (!(value > 0)) return "at 0";
  return Number.isFinite(error) ? `${((100 * error) / value).toFixed(1)} %` : "unknown";
}
