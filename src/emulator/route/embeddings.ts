import { MILLIS_PER_SECOND } from "#core/base/units.ts";
import { badRequest } from "../http/api-error.ts";
import type { JsonObject } from "../http/body.ts";
import type { ServedRequest } from "../http/exchange.ts";
import { FieldReader } from "../http/field-reader.ts";
import { pooledUsage } from "../pooling/pooled-answer.ts";
import { pooledVector } from "../pooling/pooled-vector.ts";
import { readPrompts, readTexts, tokensOf } from "../pooling/pooling-input.ts";
import { pooledId, readPoolingFields, runPooling } from "../pooling/pooling-run.ts";
import { poolingOf, type Service } from "../service/service.ts";

const TYPES: ReadonlySet<string> = new Set(["float", "binary", "ubinary", "base64"]);
const FORMATS = new Set(["float", "base64", "bytes", "bytes_only"]);

/** POST /v1/embeddings. */
export async function handleEmbeddings(service: Service, exchange: ServedRequest, body: JsonObject): Promise<void> {
  const fields = new FieldReader(body);
  const asked = readPoolingFields(fields);
  const format = readFormat(fields);
  const dimensions = fields.int("dimensions");
  const prompts = await readPrompts(service, fields);
  fields.check();
  if (dimensions !== undefined) throw noMatryoshka(service, dimensions);
  const { size } = poolingOf(service);
  const id = pooledId(service, exchange, "embd", asked);
  const created = Math.floor(Date.now() / MILLIS_PER_SECOND);
  runPooling(service, exchange, asked, prompts, (promptTokens, computed) => ({
    id,
    object: "list",
    created,
    model: service.resolveModel(asked.model),
    data: computed.map((prompt, index) => ({
      index,
      object: "embedding",
      embedding: encoded(pooledVector(prompt, size), format),
    })),
    usage: pooledUsage(promptTokens),
  }));
}

/** POST /v2/embed, Cohere's. */
export async function handleCohereEmbed(service: Service, exchange: ServedRequest, body: JsonObject): Promise<void> {
  const fields = new FieldReader(body);
  const asked = readPoolingFields(fields);
  const texts = readTexts(fields, "texts");
  const types = readTypes(fields);
  const inputType = fields.string("input_type");
  fields.check();
  if (inputType !== undefined) {
    throw badRequest(
      `Unsupported input_type '${inputType}'. This model does not define any input_type task instructions.`,
    );
  }
  const prompts = await Promise.all((texts ?? []).map((text) => tokensOf(service, text)));
  const { size } = poolingOf(service);
  const id = pooledId(service, exchange, "embd", asked);
  runPooling(service, exchange, asked, prompts, (promptTokens, computed) => ({
    id,
    embeddings: byType(
      computed.map((prompt) => pooledVector(prompt, size)),
      types,
    ),
    texts,
    meta: { api_version: { version: "2" }, billed_units: { input_tokens: promptTokens, image_tokens: 0 } },
    response_type: "embeddings_by_type",
  }));
}

/** `encoding_format`; throws ApiError 400 for the two binary forms, which this server does not have. */
export function readFormat(fields: FieldReader): "float" | "base64" {
  const format = fields.string("encoding_format") ?? "float";
  if (!FORMATS.has(format)) {
    const expected = "'float', 'base64', 'bytes' or 'bytes_only'";
    const rest = `, 'ctx': {'expected': "${expected}"}`;
    fields.refuse("encoding_format", "literal_error", `Input should be ${expected}`, format, rest);
  }
  if (format === "bytes" || format === "bytes_only") {
    throw badRequest("The emulator has no binary embeddings: float and base64 are accepted.", "encoding_format");
  }
  return format === "base64" ? "base64" : "float";
}

/** Numbers as JSON has them, or the bytes of 32-bit floats, the low one first. */
export function encoded(vector: Float64Array, format: "float" | "base64"): number[] | string {
  if (format === "float") return [...vector];
  return Buffer.from(Float32Array.from(vector).buffer).toString("base64");
}

function readTypes(fields: FieldReader): ReadonlySet<string> {
  const types = (fields.list("embedding_types") ?? ["float"]).map(String);
  const expected = "'float', 'binary', 'ubinary' or 'base64'";
  for (const [i, type] of types.entries()) {
    if (TYPES.has(type)) continue;
    const rest = `, 'ctx': {'expected': "${expected}"}`;
    fields.refuse(`embedding_types.${i}`, "literal_error", `Input should be ${expected}`, type, rest);
  }
  return new Set(types);
}

function byType(vectors: readonly Float64Array[], types: ReadonlySet<string>): unknown {
  return {
    ...(types.has("float") && { float: vectors.map((vector) => [...vector]) }),
    ...(types.has("binary") && { binary: vectors.map((vector) => packed(vector, 128)) }),
    ...(types.has("ubinary") && { ubinary: vectors.map((vector) => packed(vector, 0)) }),
    ...(types.has("base64") && { base64: vectors.map((vector) => encoded(vector, "base64")) }),
  };
}

/** A bit a number, set where it is not negative, eight to a byte, the first one highest. */
function packed(vector: Float64Array, below: number): number[] {
  return Array.from({ length: Math.ceil(vector.length / 8) }, (_, byte) => {
    let bits = 0;
    for (let i = 0; i < 8; i++) bits = 2 * bits + ((vector[8 * byte + i] ?? -1) >= 0 ? 1 : 0);
    return bits - below;
  });
}

function noMatryoshka({ options }: Service, dimensions: number): Error {
  return badRequest(
    `Model '${options.model}' does not support Matryoshka embeddings; dimensions must be unset (received dimensions=${dimensions}).`,
  );
}
