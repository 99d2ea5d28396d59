/** A body of a chat that is large in one way; `size` counts what its name names. */
export interface BodyShape {
  readonly name: string;
  readonly sizes: readonly number[];
  /** Of a chat where there is none. */
  readonly path?: string;
  readonly build: (size: number, words: (bytes: number) => string) => string;
}

const DEPTH_MAX = 60;
const COMPLETIONS = "/v1/completions";
const EMBEDDINGS = "/v1/embeddings";

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
    // As many as limits.jsonFieldsMax lets in.
    sizes: [4, 16, 64, 250],
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
    build: (size, words) =>
      body(words, {
        response_format: {
          type: "json_schema",
          json_schema: { name: "s", schema: { type: "object", properties: properties(size, words) } },
        },
      }),
  },
  {
    name: "keys of metadata",
    sizes: [64, 256, 1_024, 4_096],
    build: (size, words) => body(words, { metadata: properties(size, words) }),
  },
  {
    name: "properties of one tool",
    sizes: [16, 64, 256, 1_024],
    build: (size, words) =>
      body(words, {
        tools: [{ type: "function", function: { name: "f", parameters: { properties: properties(size, words) } } }],
      }),
  },
  {
    name: "keys for the template",
    sizes: [16, 64, 256, 1_024],
    build: (size, words) => body(words, { chat_template_kwargs: properties(size, words) }),
  },
  {
    name: "messages that call tools",
    sizes: [8, 32, 128, 512],
    build: (size, words) => JSON.stringify({ model: "m", messages: times(size, (i) => calling(i, words)) }),
  },
  {
    name: "calls of one message",
    sizes: [8, 32, 128, 512],
    build: (size, words) =>
      JSON.stringify({
        model: "m",
        messages: [
          { role: "user", content: words(40) },
          { ...calling(1, words), tool_calls: times(size, call) },
        ],
      }),
  },
  {
    name: "images of 8 KiB",
    sizes: [4, 16, 64, 256],
    build: (size, words) =>
      JSON.stringify({
        model: "m",
        messages: [{ role: "user", content: [{ type: "text", text: words(100) }, ...times(size, () => image(words))] }],
      }),
  },
  {
    name: "letters of a user's name",
    sizes: [256, 1_024, 16_384, 262_144],
    build: (size, words) => body(words, { user: letters(size, words), session_id: letters(size, words) }),
  },
  {
    name: "prompts of a completion",
    path: COMPLETIONS,
    sizes: [4, 16, 64, 256, 1_024, 4_096],
    build: (size, words) => JSON.stringify({ model: "m", prompt: times(size, () => words(100)) }),
  },
  {
    name: "token ids of a prompt",
    path: COMPLETIONS,
    sizes: [1_024, 4_096, 16_384, 65_536],
    build: (size, words) => JSON.stringify({ model: "m", prompt: times(size, (i) => i + words(8).charCodeAt(0)) }),
  },
  {
    name: "inputs of an embedding",
    path: EMBEDDINGS,
    sizes: [4, 16, 64, 256, 1_024, 4_096],
    build: (size, words) => JSON.stringify({ model: "m", input: times(size, () => words(100)) }),
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

function calling(i: number, words: (bytes: number) => string): object {
  if (i % 2 === 0) return { role: "user", content: words(80) };
  return { role: "assistant", content: null, tool_calls: [call(i)] };
}

function call(i: number): object {
  return { id: `call_${i}`, type: "function", function: { name: "f", arguments: `{"a":${i},"b":"${i}"}` } };
}

function image(words: (bytes: number) => string): object {
  const url = `data:image/png;base64,${Buffer.from(words(6_144)).toString("base64")}`;
  return { type: "image_url", image_url: { url } };
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
