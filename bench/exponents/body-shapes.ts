/** A body of a chat that is large in one way; `size` counts what its name names. */
export interface BodyShape {
  readonly name: string;
  readonly sizes: readonly number[];
  /** Where the engine's own JSON.parse is steeper than what is allowed else. */
  readonly exponentMax?: number;
  readonly build: (size: number, words: (bytes: number) => string) => string;
}

const DEPTH_MAX = 60;
/** JSON.parse alone takes 0.05 us a key of an object of 64 and 0.19 of one of 8,192: an exponent of 1.1 to 1.25. */
const OF_MANY_KEYS = 1.25;

/** What clients send beside a long text: all within the gateway's default limits but for counts, which a bench raises. */
export const BODY_SHAPES: readonly BodyShape[] = [
  {
    name: "tools",
    sizes: [4, 16, 64, 256],
    build: (size, words) => body(words, { tools: times(size, (i) => tool(`tool_${i}`, words)) }),
  },
  {
    name: "parts of a message",
    sizes: [8, 32, 128, 512, 2_048],
    build: (size, words) =>
      JSON.stringify({
        model: "m",
        messages: [{ role: "user", content: times(size, () => ({ type: "text", text: words(40) })) }],
      }),
  },
  {
    name: "stop strings",
    sizes: [64, 256, 1_024, 4_096],
    build: (size, words) => body(words, { stop: times(size, () => words(20)) }),
  },
  {
    name: "tokens in logit_bias",
    sizes: [64, 256, 1_024, 4_096],
    build: (size, words) => body(words, { logit_bias: Object.fromEntries(times(size, (i) => [String(i), 1])) }),
  },
  {
    name: "keys nobody knows",
    sizes: [64, 256, 1_024, 4_096],
    exponentMax: OF_MANY_KEYS,
    build: (size, words) => body(words, Object.fromEntries(times(size, (i) => [`key_${i}`, words(20)]))),
  },
  {
    name: "depth of a JSON schema",
    sizes: [8, 15, 30, DEPTH_MAX],
    build: (size, words) =>
      body(words, { response_format: { type: "json_schema", json_schema: { name: "s", schema: nested(size) } } }),
  },
  {
    name: "properties of a JSON schema",
    sizes: [64, 256, 1_024, 4_096],
    exponentMax: OF_MANY_KEYS,
    build: (size, words) =>
      body(words, {
        response_format: {
          type: "json_schema",
          json_schema: { name: "s", schema: { type: "object", properties: properties(size, words) } },
        },
      }),
  },
  {
    name: "escapes in a text",
    sizes: [256, 1_024, 4_096, 16_384],
    build: (size) => JSON.stringify({ model: "m", messages: [{ role: "user", content: 'a "\n\\'.repeat(size / 4) }] }),
  },
  {
    name: "one word, letters",
    sizes: [1_024, 4_096, 16_384, 65_536],
    build: (size, words) => JSON.stringify({ model: "m", messages: [{ role: "user", content: letters(size, words) }] }),
  },
];

function body(words: (bytes: number) => string, more: object): string {
  return JSON.stringify({ model: "m", messages: [{ role: "user", content: words(200) }], ...more });
}

function times<T>(count: number, make: (i: number) => T): T[] {
  return Array.from({ length: count }, (_, i) => make(i));
}

function tool(name: string, words: (bytes: number) => string): object {
  const parameters = { type: "object", properties: properties(4, words), required: ["property_0"] };
  return { type: "function", function: { name, description: words(120), parameters } };
}

function properties(count: number, words: (bytes: number) => string): object {
  return Object.fromEntries(times(count, (i) => [`property_${i}`, { type: "string", description: words(60) }]));
}

function nested(depth: number): object {
  let schema: object = { type: "string" };
  // Two levels of JSON each.
  for (let level = 0; level < depth / 2; level++) schema = { type: "object", properties: { inner: schema } };
  return schema;
}

function letters(count: number, words: (bytes: number) => string): string {
  return words(2 * count)
    .replaceAll(" ", "")
    .slice(0, count);
}
