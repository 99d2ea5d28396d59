import { isBeyond } from "../base/json-scan.ts";
import type { ServedModel } from "./endpoint-directory.ts";

/** Longest such answer: 5,000 adapters as vLLM lists them. */
export const MODELS_BYTES_MAX = 4 * 1024 * 1024;
const BOUNDS = {
  jsonDepthMax: 16,
  jsonKeysMax: 262_144,
  jsonFieldsMax: 64,
  jsonItemsMax: 262_144,
  jsonValuesMax: 524_288,
};

/** Most models that one engine may list; adapters can be many. */
const MODELS_MAX = 10_000;

/** The models of an answer to GET /v1/models, or undefined when it is no such answer. */
export function readServedModels(text: string): readonly ServedModel[] | undefined {
  if (isBeyond(Buffer.from(text), BOUNDS)) return undefined;
  let answer: unknown;
  try {
    answer = JSON.parse(text);
  } catch {
    return undefined;
  }
  if (typeof answer !== "object" || answer === null || !("data" in answer) || !Array.isArray(answer.data)) {
    return undefined;
  }
  const models: ServedModel[] = [];
  for (const entry of answer.data.slice(0, MODELS_MAX) as unknown[]) {
    if (typeof entry !== "object" || entry === null || !("id" in entry)) return undefined;
    if (typeof entry.id !== "string" || entry.id === "") return undefined;
    models.push({ ...entry, id: entry.id, object: "model" });
  }
  return models;
}
