import { stringify, YAMLSeq } from "yaml";
import { type EngineConfig, engineDefaults } from "#engine/config.ts";
import type { StepResiduals } from "#engine/step-drift.ts";
import type { PredictionError } from "../question/figures.ts";
import type { Calibration } from "./calibrate.ts";
import type { ModelError } from "./model-error.ts";
import { PARAMETERS } from "./parameters.ts";

/** What the file says of where it comes from. */
export interface Provenance {
  /** Traces by name. */
  readonly traces: readonly string[];
  readonly requests: number;
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
    `Standard errors: ${uncertain.join(", ")}.`,
    "queueDelay holds all time outside the engine; gaps between steps are in the step time.",
    ...calibration.caveats,
    ...provenance.notes,
  ];
  const comment = lines.map((line) => (line === "" ? "#" : `# ${line}`)).join("\n");
  const { residuals } = calibration;
  const told = residuals === undefined ? {} : { residuals: residualsFile(residuals) };
  return `${comment}\n${stringify({ ...fileOf(engine), ...told }, { lineWidth: 0 })}`;
}

function residualsFile({ windows, firstTokens, ...rest }: StepResiduals): Record<string, unknown> {
  if (firstTokens === undefined) return { ...rest, windows: windows.map(listed) };
  const { predictedMicros, laterMicros } = firstTokens;
  const listedTokens = { predictedMicros: listed(predictedMicros), laterMicros: listed(laterMicros) };
  return { ...rest, windows: windows.map(listed), firstTokens: listedTokens };
}

/** What differs from the defaults, and the sizes always. */
function fileOf(engine: EngineConfig): Record<string, unknown> {
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
