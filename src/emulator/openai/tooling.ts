import { ApiError, badRequest } from "../http/api-error.ts";
import { isObject, type JsonObject } from "../http/body.ts";
import type { FieldReader } from "./field-reader.ts";

/** What shape the answer must have: free text, one tool call, or a JSON text. */
export type Tooling =
  | { readonly kind: "text" }
  | { readonly kind: "call"; readonly name: string; readonly schema: JsonObject; readonly required: boolean }
  | { readonly kind: "json"; readonly schema: JsonObject };

const TEXT: Tooling = { kind: "text" };
const NO_PARSER = '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set';

/** Throws ApiError 400 in vLLM's words. */
export function readTooling(fields: FieldReader, enableAutoToolChoice: boolean): Tooling {
  const tools = (fields.list("tools") ?? []).filter(isObject);
  const choice = fields.body["tool_choice"] ?? (tools.length > 0 ? "auto" : "none");
  if (choice === "none") return readResponseFormat(fields);
  if (tools.length === 0) throw badRequest("When using `tool_choice`, `tools` must be set.", "tool_choice");
  if (choice === "auto") {
    if (!enableAutoToolChoice) throw new ApiError(400, "BadRequestError", NO_PARSER);
    return readResponseFormat(fields);
  }
  const functions = tools.map((tool) => tool["function"]).filter(isObject);
  if (choice === "required") return call(functions[0], true);
  const name = isObject(choice) && isObject(choice["function"]) ? choice["function"]["name"] : undefined;
  if (typeof name !== "string") {
    const reason = "Invalid value for `tool_choice`: accepted are `none`, `auto`, `required` or a named tool.";
    throw badRequest(reason, "tool_choice");
  }
  const named = functions.find((one) => one["name"] === name);
  if (named !== undefined) return call(named, false);
  throw badRequest("The tool specified in `tool_choice` does not match any of the specified `tools`", "tool_choice");
}

function call(definition: JsonObject | undefined, required: boolean): Tooling {
  const name = definition?.["name"];
  if (definition === undefined || typeof name !== "string") throw badRequest("Each tool needs a `function.name`.");
  const parameters = definition["parameters"];
  return { kind: "call", name, schema: isObject(parameters) ? parameters : {}, required };
}

function readResponseFormat(fields: FieldReader): Tooling {
  const format = fields.body["response_format"];
  if (!isObject(format) || format["type"] === "text") return TEXT;
  if (format["type"] === "json_object") return { kind: "json", schema: { type: "object" } };
  const holder = format["json_schema"];
  const schema = isObject(holder) ? holder["schema"] : undefined;
  if (format["type"] === "json_schema" && isObject(schema)) return { kind: "json", schema };
  throw badRequest("response_format must be text, json_object, or json_schema with a schema.", "response_format");
}
