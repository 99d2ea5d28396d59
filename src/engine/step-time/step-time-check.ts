import type { Reader } from "../reader.ts";
import type { AttentionRow } from "./attention-grid.ts";
import type { CoefficientSpec } from "./coefficients.ts";
import type { CurvePoint, KernelTableSpec } from "./kernel-table.ts";
import type { MeasuredSpec } from "./measured.ts";
import type { HardwareShape, ModelShape, RooflineSpec } from "./roofline.ts";
import { STEP_TIME_KINDS, type StepTimeSpec } from "./step-time.ts";

/** Reads a step time: `kind` says which, the other keys are those of its specification. */
export function readStepTime(reader: Reader): StepTimeSpec {
  const kind = reader.choice("kind", STEP_TIME_KINDS, undefined);
  switch (kind) {
    case "coefficients":
      return readCoefficients(reader);
    case "roofline":
      return readRoofline(reader);
    case "kernel-table":
      return readKernelTable(reader);
    case "measured":
      return readMeasured(reader);
  }
}

function readCoefficients(reader: Reader): CoefficientSpec {
  return {
    kind: "coefficients",
    baseMicros: reader.micros("baseMicros", undefined),
    perPrefillTokenMicros: reader.micros("perPrefillTokenMicros", undefined),
    perDecodeMicros: reader.micros("perDecodeMicros", undefined),
    perSequenceMicros: reader.micros("perSequenceMicros", 0),
    perPrefillMicros: reader.micros("perPrefillMicros", 0),
    perDecodeContextTokenMicros: reader.micros("perDecodeContextTokenMicros", 0),
    perPrefillPairMicros: reader.micros("perPrefillPairMicros", 0),
  };
}

function readRoofline(reader: Reader): RooflineSpec {
  return {
    kind: "roofline",
    model: reader.required("model", readModel),
    hardware: reader.required("hardware", readHardware),
    tensorParallel: reader.integer("tensorParallel", 1, 1024, 1),
  };
}

function readModel(reader: Reader): ModelShape {
  const weightBytes = reader.has("weightBytes") ? { weightBytes: reader.number("weightBytes", 0.1, 8, undefined) } : {};
  const experts = reader.optional("experts", (inner) => ({
    count: inner.integer("count", 1, 65_536, undefined),
    perToken: inner.integer("perToken", 1, 65_536, undefined),
  }));
  return {
    layers: reader.integer("layers", 1, 100_000, undefined),
    hidden: reader.integer("hidden", 1, 10_000_000, undefined),
    heads: reader.integer("heads", 1, 1_000_000, undefined),
    kvHeads: reader.integer("kvHeads", 1, 1_000_000, undefined),
    intermediate: reader.integer("intermediate", 1, 10_000_000, undefined),
    bytesPerParameter: reader.number("bytesPerParameter", 0.1, 8, 2),
    mlpMatrices: reader.integer("mlpMatrices", 1, 3, 3),
    ...weightBytes,
    ...(experts === undefined ? {} : { experts }),
  };
}

function readHardware(reader: Reader): HardwareShape {
  return {
    tflopsPeak: reader.number("tflopsPeak", 0.001, 1e9, undefined),
    bandwidthTbs: reader.number("bandwidthTbs", 0.0001, 1e6, undefined),
    mfuPrefill: reader.number("mfuPrefill", 0.001, 1, undefined),
    mfuDecode: reader.number("mfuDecode", 0.001, 1, undefined),
  };
}

function readKernelTable(reader: Reader): KernelTableSpec {
  return {
    kind: "kernel-table",
    layers: reader.integer("layers", 1, 100_000, undefined),
    layer: readPoints(reader, "layer"),
    once: readPoints(reader, "once"),
    perSequence: readPoints(reader, "perSequence"),
    attention: reader.rows("attention", 5).map((row) => row as unknown as AttentionRow),
    scale: reader.number("scale", 0.001, 1000, 1),
    baseMicros: reader.micros("baseMicros", 0),
    perTokenMicros: reader.micros("perTokenMicros", 0),
  };
}

function readPoints(reader: Reader, key: string): readonly CurvePoint[] {
  return reader.rows(key, 2).map((row) => row as unknown as CurvePoint);
}

function readMeasured(reader: Reader): MeasuredSpec {
  const startAt = reader.has("startAt") ? { startAt: reader.numbers("startAt") } : {};
  return { kind: "measured", stepMicros: reader.numbers("stepMicros"), ...startAt };
}
