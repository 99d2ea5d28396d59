import { ApiError } from "../http/api-error.ts";
import type { JsonObject } from "../http/body.ts";
import type { ServedRequest } from "../http/exchange.ts";
import { sendBody, sendJson } from "../http/reply.ts";
import { FieldReader } from "../http/field-reader.ts";
import type { Service } from "../service/service.ts";

/** Adapters of one server; more are a mistake. */
const ADAPTERS_MAX = 4_096;
const TEXT = "text/plain; charset=utf-8";

/** POST /v1/load_lora_adapter, where the server lets adapters come and go; not there otherwise. */
export function handleLoadAdapter(service: Service, exchange: ServedRequest, body: JsonObject): void {
  if (!service.options.runtimeAdapters) return sendJson(exchange, 404, '{"detail":"Not Found"}');
  const fields = new FieldReader(body);
  const name = fields.string("lora_name") ?? missing(fields, body, "lora_name");
  const path = fields.string("lora_path") ?? missing(fields, body, "lora_path");
  const inPlace = fields.boolean("load_inplace") ?? false;
  fields.check();
  if (name === "" || path === "") throw invalid("Both 'lora_name' and 'lora_path' must be provided.");
  if (service.isBaseModel(name)) throw invalid(`The lora adapter '${name}' conflicts with a served base model.`);
  const { adapters } = service;
  if (!inPlace && adapters.has(name)) {
    throw invalid(
      `The lora adapter '${name}' has already been loaded. If you want to load the adapter in place, set ` +
        "'load_inplace' to True.",
    );
  }
  if (adapters.size >= ADAPTERS_MAX && !adapters.has(name))
    throw new ApiError(500, "InternalServerError", `This server holds ${ADAPTERS_MAX} adapters at most.`);
  adapters.set(name, path);
  sendBody(exchange, 200, TEXT, `Success: LoRA adapter '${name}' added successfully.`);
}

/** POST /v1/unload_lora_adapter. What runs with the adapter goes on. */
export function handleUnloadAdapter(service: Service, exchange: ServedRequest, body: JsonObject): void {
  if (!service.options.runtimeAdapters) return sendJson(exchange, 404, '{"detail":"Not Found"}');
  const fields = new FieldReader(body);
  const name = fields.string("lora_name") ?? missing(fields, body, "lora_name");
  fields.check();
  if (name === "") throw invalid("'lora_name' needs to be provided to unload a LoRA adapter.");
  if (!service.adapters.delete(name))
    throw new ApiError(404, "NotFoundError", `The lora adapter '${name}' cannot be found.`);
  sendBody(exchange, 200, TEXT, `Success: LoRA adapter '${name}' removed successfully.`);
}

function missing(fields: FieldReader, body: JsonObject, name: string): string {
  if (body[name] === undefined) fields.missing(name);
  return "";
}

function invalid(message: string): ApiError {
  return new ApiError(400, "InvalidUserInput", message);
}
