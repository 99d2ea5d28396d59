import { stringify, YAMLSeq } from "yaml";
import { MICROS_PER_MILLI, MICROS_PER_SECOND } from "#core/base/units.ts";
import { type EngineConfig, engineDefaults } from "#engine/config.ts";
import type { EngineSource } from "#engine/engine-source.ts";
import type { StepResiduals } from "#engine/step-drift.ts";
import type { PredictionError } from "../figure/figures.ts";
import { betweenWords } from "../recorded/engine-origin.ts";
import type { Calibration } from "./calibrate.ts";
import type { ModelError } from "./model-error.ts";
import { PARAMETERS } from "./parameters.ts";

/** What the file states about where it comes from. */
export interface Provenance {
  /** Traces by name. */
  readonly traces: readonly string[];
  readonly requests: number;
  readonly source: EngineSource;
  readonly notes: readonly string[];
}

const DIGITS = 6;

/** An engine file that loadEngine reads, with its source, its error and its uncertainty as comments. */
export function engineText(calibration: Calibration, provenance: Provenance): string {
  const { engine, trained, heldOut, errors, parameters } = calibration;
  const uncertain = PARAMETERS.flatMap((name) => {
    const error = errors[name];
    return error === undefined || !(parameters[name] > 0) ? [] : [`${name} ${plusMinus(parameters[name], error)}`];
  });
  const lines = [
    `Calibrated by gnomon from ${provenance.traces.join(" and ")}: ${provenance.requests} requests.`,
    "",
    `Error on ${heldOut.requests} held-out requests, mean: ${meansOf(heldOut)}; per request (MAPE): ${mapesOf(heldOut)}.`,
    `Error on the ${trained.requests} requests fitted, mean: ${meansOf(trained)}; per request: ${mapesOf(trained)}.`,
    "What is shipped below was fitted anew on all of them, in the same way.",
    `Standard errors: ${uncertain.join(", ")}.`,
    "queueDelay holds all time outside the engine; gaps between steps are in the step time.",
    ...residualWords(calibration.residuals),
    ...calibration.caveats,
    ...provenance.notes,
  ];
  const comment = lines.map((line) => (line === "" ? "#" : `# ${line}`)).join("\n");
  const { residuals } = calibration;
  const uncertainty = residuals === undefined ? {} : { residuals: residualsFile(residuals) };
  const { source } = provenance;
  return `${comment}\n${stringify({ ...engineFields(engine), ...uncertainty, source }, { lineWidth: 0 })}`;
}

/** What a calibration leaves to chance, for its file: many numbers in few lines. */
export function residualsFile({ windows, firstTokens, stalls, ...rest }: StepResiduals): Record<string, unknown> {
  return {
    ...rest,
    windows: windows.map(listed),
    ...(firstTokens && {
      firstTokens: {
        predictedMicros: listed(firstTokens.predictedMicros),
        laterMicros: listed(firstTokens.laterMicros),
      },
    }),
    ...(stalls && { stalls: { ...stalls, micros: listed(stalls.micros) } }),
  };
}

function residualWords(residuals: StepResiduals | undefined): string[] {
  if (residuals === undefined) return ["Too short to show how step times vary: predictions have no intervals."];
  const { betweenRuns, stalls } = residuals;
  const lines = [];
  if (betweenRuns !== undefined) lines.push(`Another run: ${betweenWords(betweenRuns)}.`);
  if (stalls !== undefined && stalls.count > 0) {
    const seconds = (stalls.watchedMicros / MICROS_PER_SECOND).toFixed(0);
    const median = ((stalls.micros[stalls.micros.length >> 1] ?? 0) / MICROS_PER_MILLI).toFixed(0);
    lines.push(
      `The machine stood still ${stalls.count} times in ${seconds} s of work, half of them for ${median} ms or more.`,
    );
  }
  return lines;
}

/** What differs from the defaults, and the sizes always. */
export function engineFields(engine: EngineConfig): Record<string, unknown> {
  const defaults: Record<string, unknown> = { ...engineDefaults() };
  const always: ReadonlySet<string> = new Set([
    "blockTokens",
    "kvBlocks",
    "sequencesMax",
    "batchTokensMax",
    "modelTokensMax",
    "stepTime",
  ]);
  const unwritten: ReadonlySet<string> = new Set(["coalesce", "check"]);
  const entries = Object.entries(engine).filter(([key, value]) => {
    if (value === undefined || unwritten.has(key)) return false;
    return always.has(key) || JSON.stringify(value) !== JSON.stringify(defaults[key]);
  });
  return Object.fromEntries(entries.map(([key, value]) => [key, rounded(value)]));
}

function rounded(value: unknown): unknown {
  if (typeof value === "number") return Number(value.toPrecision(DIGITS));
  if (typeof value !== "object" || value === null || Array.isArray(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, rounded(one)]));
}

/** Many numbers in few lines. */
function listed(values: readonly number[]): unknown {
  const list = new YAMLSeq();
  list.items.push(...values);
  list.flow = true;
  return list;
}

function meansOf(error: ModelError): string {
  return threeOf(error, ({ meanRelative }) => signedPercent(meanRelative));
}

function mapesOf(error: ModelError): string {
  return threeOf(error, ({ mape }) => `${(100 * mape).toFixed(1)} %`);
}

function threeOf(error: ModelError, of: (one: PredictionError) => string): string {
  const named = [
    ["TTFT", error.ttftMicros],
    ["TPOT", error.tpotMicros],
    ["E2E", error.e2eMicros],
  ] as const;
  return named.map(([name, one]) => `${name} ${one === undefined ? "not seen" : of(one)}`).join(", ");
}

function plusMinus(value: number, error: number): string {
  return Number.isFinite(error) ? `${((100 * error) / value).toFixed(1)} %` : "unknown";
}

function signedPercent(share: number): string {
  return `${share < 0 ? "" : "+"}${(100 * share).toFixed(1)} %`;
}
