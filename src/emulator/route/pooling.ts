import { MILLIS_PER_SECOND } from "#core/base/units.ts";
import { badRequest } from "../http/api-error.ts";
import type { JsonObject } from "../http/body.ts";
import type { ServedRequest } from "../http/exchange.ts";
import { FieldReader } from "../http/field-reader.ts";
import { pooledUsage } from "../pooling/pooled-answer.ts";
import { classShares, pooledVector } from "../pooling/pooled-vector.ts";
import { readPrompts } from "../pooling/pooling-input.ts";
import { pooledId, readPoolingFields, runPooling } from "../pooling/pooling-run.ts";
import { poolingOf, type Service } from "../service/service.ts";
import { encoded, readFormat } from "./embeddings.ts";

/** POST /pooling: what the model makes of prompts, an embedding or shares of classes. */
export async function handlePooling(service: Service, exchange: ServedRequest, body: JsonObject): Promise<void> {
  const fields = new FieldReader(body);
  const asked = readPoolingFields(fields);
  const format = readFormat(fields);
  const task = fields.string("task");
  const prompts = await readPrompts(service, fields);
  fields.check();
  const own = poolingOf(service);
  if (task !== undefined && task !== own.task) {
    const ofTokens = `token_${own.task}`;
    if (task === ofTokens)
      throw badRequest(`Try switching the model's pooling_task via --pooler-config.task ${ofTokens}.`, "task");
    // A set's order, as its process prints it.
    const supported = own.task === "embed" ? `['embed', '${ofTokens}']` : `['${ofTokens}', 'classify']`;
    throw badRequest(`Unsupported task: '${task}' Supported tasks: ${supported}`, "task");
  }
  if ((fields.body["dimensions"] ?? undefined) !== undefined) {
    throw badRequest("dimensions is currently not supported", "dimensions");
  }
  const head = headOf(service, pooledId(service, exchange, "pooling", asked), asked.model);
  const made = own.task === "embed" ? pooledVector : classShares;
  runPooling(service, exchange, asked, prompts, (promptTokens, computed) => ({
    ...head,
    data: computed.map((prompt, index) => ({
      index,
      object: "pooling",
      data: encoded(made(prompt, own.size), format),
    })),
    usage: pooledUsage(promptTokens),
  }));
}

/** POST /classify. */
export async function handleClassify(service: Service, exchange: ServedRequest, body: JsonObject): Promise<void> {
  const fields = new FieldReader(body);
  const asked = readPoolingFields(fields);
  const prompts = await readPrompts(service, fields);
  fields.check();
  const { size } = poolingOf(service);
  const head = headOf(service, pooledId(service, exchange, "classify", asked), asked.model);
  runPooling(service, exchange, asked, prompts, (promptTokens, computed) => ({
    ...head,
    data: computed.map((prompt, index) => {
      const probs = [...classShares(prompt, size)];
      const label = `LABEL_${probs.indexOf(Math.max(...probs))}`;
      return { index, label, probs, num_classes: size };
    }),
    usage: pooledUsage(promptTokens),
  }));
}

function headOf(service: Service, id: string, model: string): object {
  const created = Math.floor(Date.now() / MILLIS_PER_SECOND);
  return { id, object: "list", created, model: service.resolveModel(model) };
}
