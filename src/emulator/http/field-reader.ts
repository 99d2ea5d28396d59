import { describe, isObject, issue, validationError, type JsonObject } from "./body.ts";

/**
 * Reads typed fields of a request body with pydantic's leniency (numbers and booleans may come as strings) and
 * collects what it refuses, to be reported together. A field that is absent or null reads as undefined.
 */
export class FieldReader {
  readonly body: JsonObject;
  readonly #path: string;
  readonly #issues: { readonly loc: string; readonly line: string }[];

  constructor(body: JsonObject, path = "body", issues: { loc: string; line: string }[] = []) {
    this.body = body;
    this.#path = path;
    this.#issues = issues;
  }

  /** Throws ApiError 400 with everything refused so far. */
  check(): void {
    const [first] = this.#issues;
    if (first === undefined) return;
    throw validationError(
      this.#issues.map((one) => one.line),
      first.loc,
    );
  }

  /** @param rest further fields of the report's line, with the comma before them */
  refuse(name: string, type: string, message: string, input: unknown, rest = ""): undefined {
    const loc = `${this.#path}.${name}`;
    this.#issues.push({ loc, line: issue(type, loc, message, describe(input), rest) });
    return undefined;
  }

  missing(name: string): undefined {
    return this.refuse(name, "missing", "Field required", this.body);
  }

  int(name: string): number | undefined {
    const value = this.#value(name);
    return value === undefined ? undefined : this.asInt(name, value);
  }

  /** A value that stands at `name` as an integer. */
  asInt(name: string, value: unknown): number | undefined {
    if (typeof value === "boolean") return value ? 1 : 0;
    if (typeof value === "string") {
      if (/^\s*[-+]?\d+\s*$/.test(value)) return Number(value);
      const reason = "Input should be a valid integer, unable to parse string as an integer";
      return this.refuse(name, "int_parsing", reason, value);
    }
    if (typeof value !== "number") return this.refuse(name, "int_type", "Input should be a valid integer", value);
    if (Number.isInteger(value)) return value;
    const reason = "Input should be a valid integer, got a number with a fractional part";
    return this.refuse(name, "int_from_float", reason, value);
  }

  float(name: string): number | undefined {
    const value = this.#value(name);
    if (value === undefined) return undefined;
    if (typeof value === "boolean") return value ? 1 : 0;
    if (typeof value === "number") return value;
    if (typeof value !== "string") return this.refuse(name, "float_type", "Input should be a valid number", value);
    const parsed = Number(value);
    if (value.trim() !== "" && Number.isFinite(parsed)) return parsed;
    const reason = "Input should be a valid number, unable to parse string as a number";
    return this.refuse(name, "float_parsing", reason, value);
  }

  boolean(name: string): boolean | undefined {
    const value = this.#value(name);
    if (value === undefined || typeof value === "boolean") return value;
    const word = describe(value).toLowerCase();
    if (["1", "true", "t", "yes", "y", "on"].includes(word)) return true;
    if (["0", "false", "f", "no", "n", "off"].includes(word)) return false;
    if (typeof value === "object") {
      return this.refuse(name, "bool_type", "Input should be a valid boolean", value);
    }
    const reason = "Input should be a valid boolean, unable to interpret input";
    return this.refuse(name, "bool_parsing", reason, value);
  }

  string(name: string): string | undefined {
    const value = this.#value(name);
    if (value === undefined || typeof value === "string") return value;
    return this.refuse(name, "string_type", "Input should be a valid string", value);
  }

  list(name: string): readonly unknown[] | undefined {
    const value = this.#value(name);
    if (value === undefined || Array.isArray(value)) return value;
    return this.refuse(name, "list_type", "Input should be a valid list", value);
  }

  /** A reader of the object in a field, reporting into the same list. */
  object(name: string): FieldReader | undefined {
    const value = this.#value(name);
    if (value === undefined) return undefined;
    if (isObject(value)) return new FieldReader(value, `${this.#path}.${name}`, this.#issues);
    const reason = "Input should be a valid dictionary or object to extract fields from";
    return this.refuse(name, "model_attributes_type", reason, value);
  }

  #value(name: string): unknown {
    return this.body[name] ?? undefined;
  }
}
