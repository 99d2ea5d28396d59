import { MILLIS_PER_SECOND } from "#core/base/units.ts";
import { badRequest } from "../http/api-error.ts";
import type { JsonObject } from "../http/body.ts";
import type { ServedRequest } from "../http/exchange.ts";
import { FieldReader } from "../http/field-reader.ts";
import { pooledUsage } from "../pooling/pooled-answer.ts";
import { classShares, pooledVector, similarity } from "../pooling/pooled-vector.ts";
import { readTexts, tokensOf } from "../pooling/pooling-input.ts";
import { pooledId, readPoolingFields, runPooling } from "../pooling/pooling-run.ts";
import { poolingOf, type Service } from "../service/service.ts";

/** Names that a score's two sides go by. */
const SIDES = [
  ["queries", "documents"],
  ["queries", "items"],
  ["data_1", "data_2"],
  ["text_1", "text_2"],
] as const;

/** POST /score, /v1/score: how near texts are to each other, one to one, one to several or pairwise. */
export async function handleScore(service: Service, exchange: ServedRequest, body: JsonObject): Promise<void> {
  const fields = new FieldReader(body);
  const asked = readPoolingFields(fields);
  const names = SIDES.find(([one, other]) => body[one] !== undefined && body[other] !== undefined) ?? SIDES[0];
  const [first, second] = names.map((name) => readTexts(fields, name));
  fields.check();
  const pairs = await pairsOf(service, first ?? [], second ?? []);
  const id = pooledId(service, exchange, "score", asked);
  const created = Math.floor(Date.now() / MILLIS_PER_SECOND);
  runPooling(service, exchange, asked, pairs.prompts, (promptTokens, computed) => ({
    id,
    object: "list",
    created,
    model: service.resolveModel(asked.model),
    data: pairs.scores(computed).map((score, index) => ({ index, object: "score", score })),
    usage: pooledUsage(promptTokens),
  }));
}

/** POST /rerank, /v1/rerank, /v2/rerank: documents by how near they are to a query, nearest first. */
export async function handleRerank(service: Service, exchange: ServedRequest, body: JsonObject): Promise<void> {
  const fields = new FieldReader(body);
  const asked = readPoolingFields(fields);
  const [query] = readTexts(fields, "query") ?? [];
  const documents = readTexts(fields, "documents") ?? [];
  const top = fields.int("top_n") ?? 0;
  if (top < 0) {
    const reason = "Input should be greater than or equal to 0";
    fields.refuse("top_n", "greater_than_equal", reason, top, ", 'ctx': {'ge': 0}");
  }
  fields.check();
  const pairs = await pairsOf(service, [query ?? ""], documents);
  const id = pooledId(service, exchange, "score", asked);
  runPooling(service, exchange, asked, pairs.prompts, (promptTokens, computed) => {
    const results = pairs.scores(computed).map((score, index) => ({
      index,
      document: { text: documents[index], multi_modal: null },
      relevance_score: score,
    }));
    const sorted = results.toSorted((a, b) => b.relevance_score - a.relevance_score);
    return {
      id,
      model: service.resolveModel(asked.model),
      usage: { prompt_tokens: promptTokens, total_tokens: promptTokens },
      results: top === 0 ? sorted : sorted.slice(0, top),
    };
  });
}

interface Pairs {
  /** What the engine computes. */
  readonly prompts: readonly Int32Array[];
  /** Of what it computed, a score a pair. */
  readonly scores: (computed: readonly Int32Array[]) => number[];
}

/** Texts by themselves, whose embeddings are compared, or, of a model with one class, each pair as one prompt. */
async function pairsOf(service: Service, first: readonly string[], second: readonly string[]): Promise<Pairs> {
  if (first.length === 0) throw badRequest("At least one text element must be given");
  if (second.length === 0) throw badRequest("At least one text_pair element must be given");
  if (first.length > 1 && first.length !== second.length) {
    throw badRequest("Input lengths must be either 1:1, 1:N or N:N");
  }
  const encode = (texts: readonly string[]) => Promise.all(texts.map((text) => tokensOf(service, text)));
  const [one, other] = [await encode(first), await encode(second)];
  const { task, size } = poolingOf(service);
  if (task === "classify") {
    const prompts = other.map((tokens, i) => Int32Array.of(...one[one.length === 1 ? 0 : i]!, ...tokens));
    return { prompts, scores: (computed) => computed.map((prompt) => classShares(prompt, 1)[0]!) };
  }
  return {
    prompts: [...one, ...other],
    scores: (computed) => {
      const vectors = computed.map((prompt) => pooledVector(prompt, size));
      return vectors.slice(one.length).map((vector, i) => similarity(vectors[one.length === 1 ? 0 : i]!, vector));
    },
  };
}
