/**
 * What two JSON values have in common when only their content differs: keys in order, types, null or not, literals of
 * closed sets. Arrays are as their distinct elements.
 */
export function shapeOf(value: unknown, key = ""): unknown {
  if (value === null) return null;
  if (EXACT.has(key)) return value;
  if (Array.isArray(value)) return distinct(value.map((one) => shapeOf(one, MAPS.has(key) ? "map" : "")));
  if (typeof value !== "object") return typeof value;
  const entries = Object.entries(value);
  if (key === "map") return ["map", ...distinct(entries.map(([, one]) => shapeOf(one)))];
  return entries.map(([name, one]) => [name, shapeOf(one, name)]);
}

/** Fields whose very value is part of the shape. */
const EXACT = new Set(["object", "finish_reason", "role", "type", "owned_by", "code", "param"]);

/** Lists of objects keyed by data. */
const MAPS = new Set(["top_logprobs", "prompt_logprobs"]);

function distinct(values: readonly unknown[]): readonly unknown[] {
  const seen = new Set<string>();
  return values.filter((value) => {
    const text = JSON.stringify(value);
    if (seen.has(text)) return false;
    seen.add(text);
    return true;
  });
}

/**
 * Shapes of a stream's events, choice by choice: how choices interleave and how many tokens a write carries is a matter
 * of timing, so runs of equal shapes are taken as one.
 */
export function streamShape(events: readonly string[]): Readonly<Record<string, readonly string[]>> {
  const shapes: Record<string, string[]> = {};
  for (const event of events) {
    const value: unknown = event.startsWith("{") ? JSON.parse(event) : event;
    const list = (shapes[choiceOf(value)] ??= []);
    const shape = JSON.stringify(shapeOf(value));
    if (shape !== list.at(-1)) list.push(shape);
  }
  return shapes;
}

function choiceOf(event: unknown): string {
  if (typeof event !== "object" || event === null || !("choices" in event)) return "none";
  const [choice] = event.choices as readonly { readonly index: number }[];
  return choice === undefined ? "none" : `choice ${choice.index}`;
}
