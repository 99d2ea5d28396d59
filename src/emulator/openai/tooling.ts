import { ApiError, badRequest } from "../http/api-error.ts";
import { isObject, type JsonObject } from "../http/body.ts";
import type { FieldReader } from "../http/field-reader.ts";

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
  checkChoice(choice, tools);
  if (choice === "auto") {
    if (!enableAutoToolChoice) throw new ApiError(400, "BadRequestError", NO_PARSER);
    return readResponseFormat(fields);
  }
  if (!enableAutoToolChoice) throw new ApiError(400, "BadRequestError", noParser(choice));
  const functions = tools.map((tool) => tool["function"]).filter(isObject);
  if (choice === "required") return call(functions[0], true);
  return call(
    functions.find((one) => one["name"] === nameOf(choice)),
    false,
  );
}

/** Throws ApiError 400 for a choice that is none of vLLM's, or names a tool that is not there. */
function checkChoice(choice: unknown, tools: readonly JsonObject[]): void {
  if (choice === "auto" || choice === "required") return;
  const name = nameOf(choice);
  if (name === undefined) {
    const given = typeof choice === "string" ? choice : JSON.stringify(choice);
    const accepted = 'Only named tools, "none", "auto" or "required" are supported.';
    throw badRequest(`Invalid value for \`tool_choice\`: ${given}! ${accepted}`, "tool_choice");
  }
  if (tools.some((tool) => isObject(tool["function"]) && tool["function"]["name"] === name)) return;
  throw badRequest("The tool specified in `tool_choice` does not match any of the specified `tools`", "tool_choice");
}

function nameOf(choice: unknown): string | undefined {
  const name = isObject(choice) && isObject(choice["function"]) ? choice["function"]["name"] : undefined;
  return typeof name === "string" ? name : undefined;
}

function noParser(choice: unknown): string {
  const given = choice === "required" ? '"required"' : `function "${nameOf(choice)}"`;
  return `tool_choice=${given} requires --tool-call-parser to be set`;
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
  const accepted = "'text', 'json_object' or 'json_schema'";
  const rest = `, 'ctx': {'expected': "${accepted}"}`;
  fields.refuse("response_format.type", "literal_error", `Input should be ${accepted}`, format["type"], rest);
  fields.check();
  return TEXT;
}
