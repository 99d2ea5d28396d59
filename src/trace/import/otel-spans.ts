import { LENGTHS_ONLY, type WorkloadRequest } from "../workload-request.ts";
import type { ImportReport } from "./import-report.ts";
import { inOrder } from "./in-order.ts";
import { REQUEST_TOKENS_MAX } from "#core/base/units.ts";
import { isRecord, type JsonRecord, parseRecord } from "./json-record.ts";
import { readLines } from "./line-reader.ts";

/** What a line of such a file has. */
export const OTEL_SPANS_KEY = "resourceSpans";

const NANOS_PER_MICRO = 1_000;

interface Row {
  /** Microseconds since 1970. */
  readonly time: number;
  readonly promptTokens: number;
  readonly outputTokens: number;
  readonly model: string;
}

/**
 * OpenTelemetry's spans in OTLP's JSON, a batch a line, as a collector's file exporter writes them: those that count tokens
 * by the conventions for generative AI (`gen_ai.usage.input_tokens` and `output_tokens`) are requests that came when the
 * span began. All others are passed over. Spans hold nothing of what prompts share, and turns of a conversation come when
 * they came.
 */
export async function* readOtelSpans(path: string, report: ImportReport): AsyncGenerator<WorkloadRequest> {
  let start: number | undefined;
  for await (const row of inOrder(readRows(path, report), report)) {
    start ??= row.time;
    const { promptTokens, outputTokens, model } = row;
    const arrivalMicros = Math.max(0, row.time - start);
    yield { ...LENGTHS_ONLY, index: report.accept(), arrivalMicros, promptTokens, outputTokens, model };
  }
}

async function* readRows(path: string, report: ImportReport): AsyncGenerator<Row> {
  for await (const line of readLines(path)) {
    const place = `${path}:${line.number}`;
    const record = line.tooLong ? "line too long" : parseRecord(line.text);
    if (typeof record === "string") {
      report.records++;
      report.refuse(place, record);
      continue;
    }
    for (const span of spansOf(record)) {
      const attributes = attributesOf(span);
      const prompt = attributes.get("gen_ai.usage.input_tokens") ?? attributes.get("gen_ai.usage.prompt_tokens");
      if (prompt === undefined) continue;
      report.records++;
      const row = rowOf(span, attributes, prompt, report);
      if (typeof row === "string") report.refuse(place, row);
      else yield row;
    }
  }
}

function rowOf(span: JsonRecord, attributes: SpanAttributes, prompt: unknown, report: ImportReport): Row | string {
  const nanos = Number(span["startTimeUnixNano"]);
  if (!(nanos > 0)) return "startTimeUnixNano is not a time";
  const promptTokens = Number(prompt);
  if (!isCount(promptTokens) || promptTokens === 0) return "input_tokens is not a number of tokens >= 1";
  const output = attributes.get("gen_ai.usage.output_tokens") ?? attributes.get("gen_ai.usage.completion_tokens");
  const outputTokens = Number(output ?? 0);
  if (!isCount(outputTokens)) return "output_tokens is not a number of tokens";
  if (outputTokens === 0) report.adjust("output of 0 tokens raised to 1");
  const model = attributes.get("gen_ai.request.model");
  return {
    time: Math.round(nanos / NANOS_PER_MICRO),
    promptTokens,
    outputTokens: Math.max(1, outputTokens),
    model: typeof model === "string" ? model : "",
  };
}

export type SpanAttributes = ReadonlyMap<string, unknown>;

export function* spansOf(batch: JsonRecord): Generator<JsonRecord> {
  for (const resource of recordsIn(batch, "resourceSpans"))
    for (const scope of recordsIn(resource, "scopeSpans")) yield* recordsIn(scope, "spans");
}

/** Numbers stand as texts there, as all 64-bit ones do in protobuf's JSON. */
export function attributesOf(span: JsonRecord): SpanAttributes {
  const attributes = new Map<string, unknown>();
  for (const { key, value } of recordsIn(span, "attributes")) {
    if (typeof key !== "string" || !isRecord(value)) continue;
    attributes.set(key, value["intValue"] ?? value["doubleValue"] ?? value["stringValue"]);
  }
  return attributes;
}

function recordsIn(record: JsonRecord, key: string): readonly JsonRecord[] {
  const value: unknown = record[key];
  return Array.isArray(value) ? value.filter((one) => isRecord(one)) : [];
}

function isCount(value: number): boolean {
  return Number.isInteger(value) && value >= 0 && value <= REQUEST_TOKENS_MAX;
}
