import { type Fields, isFields } from "../../base/fields.ts";

/** Tools as vLLM 0.32 shows them to a template: known fields only, in its order, absent ones null. */
export function engineTools(tools: readonly unknown[]): Fields[] | undefined {
  const prepared: Fields[] = [];
  for (const tool of tools) {
    if (!isFields(tool) || !isFields(tool["function"])) return undefined;
    const called = tool["function"];
    const deferred = called["defer_loading"] ?? tool["defer_loading"];
    const definition: Record<string, unknown> = {
      name: called["name"],
      description: called["description"] ?? null,
      parameters: called["parameters"] ?? null,
    };
    if (isSet(called["strict"])) definition["strict"] = called["strict"];
    if (isSet(deferred)) definition["defer_loading"] = deferred;
    const shown: Record<string, unknown> = { type: "function", function: definition };
    if (isSet(tool["defer_loading"])) shown["defer_loading"] = tool["defer_loading"];
    prepared.push(shown);
  }
  return prepared;
}

function isSet(value: unknown): boolean {
  return value !== undefined && value !== null;
}
