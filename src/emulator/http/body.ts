import type { IncomingMessage } from "node:http";
import { ApiError } from "./api-error.ts";
import { findJsonFault } from "./json-error.ts";

export type JsonObject = Readonly<Record<string, unknown>>;

/** Largest request body that is read; a larger one ends the connection. */
const BODY_BYTES_MAX = 64 * 1024 * 1024;

/** Reads a whole body. Undefined when the client went away before its end or sent more than the limit. */
export function readWholeBody(request: IncomingMessage): Promise<Buffer | undefined> {
  return new Promise((resolve) => {
    const parts: Buffer[] = [];
    let bytes = 0;
    request.on("data", (part: Buffer) => {
      bytes += part.length;
      parts.push(part);
      if (bytes <= BODY_BYTES_MAX) return;
      request.destroy();
      resolve(undefined);
    });
    request.on("end", () => {
      const [only] = parts;
      resolve(only !== undefined && parts.length === 1 ? only : Buffer.concat(parts, bytes));
    });
    request.on("error", () => resolve(undefined));
    request.on("close", () => resolve(undefined));
  });
}

/** Parses a body as FastAPI does. Throws ApiError 400 in its words: wrong content type, no body, malformed JSON. */
export function parseJsonBody(request: IncomingMessage, body: Buffer): JsonObject {
  if (!isJson(request.headers["content-type"])) {
    throw validationError(["Unsupported Media Type: Only 'application/json' is allowed"], null);
  }
  if (body.length === 0) throw validationError([issue("missing", "body", "Field required", "None")], "body");
  const text = body.toString("utf8");
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    const fault = findJsonFault(text);
    const loc = `body.${fault.at}`;
    const cause = `, 'ctx': {'error': ${quote(fault.reason)}}`;
    throw validationError([issue("json_invalid", loc, "JSON decode error", "<dict of 0 items>", cause)], loc);
  }
  if (isObject(value)) return value;
  const reason = "Input should be a valid dictionary or object to extract fields from";
  throw validationError([issue("model_attributes_type", "body", reason, describe(value))], "body");
}

export function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** One line of pydantic's report. */
export function issue(type: string, loc: string, message: string, input: string, rest = ""): string {
  return `{'type': '${type}', 'loc': '${loc}', 'msg': ${quote(message)}, 'input': ${quote(input)}${rest}}`;
}

export function validationError(issues: readonly string[], param: string | null): ApiError {
  const head = issues.length === 1 ? "1 validation error:" : `${issues.length} validation errors:`;
  return new ApiError(400, "Bad Request", [head, ...issues].join("\n  "), param);
}

/** A rejected input as vLLM's report shows it: containers by their size only. */
export function describe(value: unknown): string {
  if (value === null || value === undefined) return "None";
  if (typeof value === "boolean") return value ? "True" : "False";
  if (typeof value === "string") return value;
  if (typeof value === "number") return String(value);
  if (Array.isArray(value)) return `<list of ${value.length} items>`;
  return `<dict of ${Object.keys(value).length} items>`;
}

function isJson(contentType: string | undefined): boolean {
  const essence = contentType?.split(";", 1)[0]?.trim().toLowerCase();
  return essence === "application/json" || essence?.endsWith("+json") === true;
}

/** Python's repr of a string: single quotes unless it holds one and no double quote. */
function quote(text: string): string {
  const mark = text.includes("'") && !text.includes('"') ? '"' : "'";
  const escaped = text.replaceAll("\\", "\\\\").replaceAll("\n", "\\n");
  return mark + (mark === "'" ? escaped.replaceAll("'", "\\'") : escaped) + mark;
}
