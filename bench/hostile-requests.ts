/** A request that has `size` of one thing. `salt` keeps it apart from others in the gateway's memo. */
export type HostileRequest = (size: number, salt: string) => Sent;

export interface Sent {
  readonly path: string;
  readonly body: string;
  /** Header lines beyond the usual ones, each with its line end. */
  readonly headers?: string;
}

const CHAT = "/v1/chat/completions";
const COMPLETIONS = "/v1/completions";
const WORDS = "the of and to in is that for it as was with be by on not he his but at are this have from or".split(" ");
const TOOL = { type: "function", function: { name: "f", parameters: { type: "object", properties: {} } } };

/** What is doubled, by its name. Sizes count what the name does; words and characters are what a text has of them. */
export const HOSTILE_REQUESTS: Readonly<Record<string, HostileRequest>> = {
  "messages, equal": (size, salt) => chat(salt, { messages: times(size, () => message("x")) }),
  "messages, distinct": (size, salt) => chat(salt, { messages: times(size, (i) => message(`message ${i}`)) }),
  "messages, equal, other roles": (size, salt) =>
    chat(salt, { messages: times(size, (i) => ({ role: ["user", "assistant", "tool"][i % 3], content: "x" })) }),
  "messages with calls": (size, salt) =>
    chat(salt, { messages: [...times(size - 1, (i) => called(i)), message("x")], tools: [TOOL] }),
  "content parts": (size, salt) =>
    chat(salt, { messages: [{ role: "user", content: times(size, (i) => ({ type: "text", text: `part ${i}` })) }] }),
  "content parts, no text": (size, salt) =>
    chat(salt, { messages: [{ role: "user", content: times(size, () => ({ type: "image_url", image_url: "x" })) }] }),
  tools: (size, salt) => chat(salt, { messages: [message("x")], tools: times(size, () => TOOL) }),
  "stop strings": (size, salt) => chat(salt, { messages: [message("x")], stop: times(size, (i) => `stop ${i}`) }),
  "keys, distinct": (size, salt) => chat(salt, { messages: [message("x")], extra: keys(size) }),
  "keys, equal": (size, salt) => raw(salt, `"extra":{${times(size, () => '"k":0').join()}}`),
  "keys of template arguments": (size, salt) =>
    chat(salt, { messages: [message("x")], chat_template_kwargs: keys(size) }),
  documents: (size, salt) => chat(salt, { messages: [message("x")], documents: times(size, () => ({ text: "x" })) }),
  depth: (size, salt) => raw(salt, `"extra":${"[".repeat(size)}${"]".repeat(size)}`),
  "depth, not closed": (size, salt) => raw(salt, `"extra":${"[".repeat(size)}`),
  headers: (size, salt) => ({
    ...chat(salt, { messages: [message("x")] }),
    headers: times(size, (i) => `x-h${i}: y\r\n`).join(""),
  }),
  "words of one message": (size, salt) => chat(salt, { messages: [message(words(size))] }),
  "letters without a space": (size, salt) => chat(salt, { messages: [message("q".repeat(size))] }),
  "letters without a space, mixed": (size, salt) => chat(salt, { messages: [message(letters(size))] }),
  "ideographs without a space": (size, salt) =>
    chat(salt, {
      messages: [message(times(size, (i) => String.fromCharCode(0x4e00 + ((i * 7919) % 20_000))).join(""))],
    }),
  spaces: (size, salt) => chat(salt, { messages: [message(" ".repeat(size))] }),
  "newlines and spaces": (size, salt) => chat(salt, { messages: [message("\n \n  ".repeat(size / 5))] }),
  digits: (size, salt) => chat(salt, { messages: [message("1234567890".repeat(size / 10))] }),
  punctuation: (size, salt) => chat(salt, { messages: [message("!?".repeat(size / 2))] }),
  "combining marks": (size, salt) => chat(salt, { messages: [message("\u0301\u0323".repeat(size / 2))] }),
  "special tokens": (size, salt) => chat(salt, { messages: [message("<|eot_id|>".repeat(size))] }),
  "beginnings of special tokens": (size, salt) => chat(salt, { messages: [message("<|reserved".repeat(size))] }),
  "escaped characters": (size, salt) => raw(salt, `"messages":[{"role":"user","content":"${'\\"'.repeat(size)}"}]`),
  "prompts, text": (size, salt) =>
    completion(
      salt,
      times(size, (i) => `prompt ${i}`),
    ),
  "prompts, token ids": (size, salt) =>
    completion(
      salt,
      times(size, (i) => [i, 1, 2, 3]),
    ),
  "token ids": (size, salt) =>
    completion(
      salt,
      times(size, (i) => (i * 7919) % 100_000),
    ),
  "words of one prompt": (size, salt) => completion(salt, words(size)),
  "input items": (size, salt) => ({
    path: "/v1/responses",
    body: JSON.stringify({ model: "tiny", input: times(size, () => message("x")), cache_salt: salt }),
  }),
};

function chat(salt: string, fields: object): Sent {
  return { path: CHAT, body: JSON.stringify({ model: "tiny", ...fields, cache_salt: salt }) };
}

function completion(salt: string, prompt: unknown): Sent {
  return { path: COMPLETIONS, body: JSON.stringify({ model: "tiny", prompt, cache_salt: salt }) };
}

/** With a field as it stands. */
function raw(salt: string, field: string): Sent {
  const messages = field.startsWith('"messages"') ? "" : '"messages":[{"role":"user","content":"x"}],';
  return { path: CHAT, body: `{"model":"tiny","cache_salt":"${salt}",${messages}${field}}` };
}

function message(content: string): object {
  return { role: "user", content };
}

function called(index: number): object {
  if (index % 2 === 0) return message("x");
  return {
    role: "assistant",
    content: null,
    tool_calls: [{ id: "c", type: "function", function: { name: "f", arguments: "{}" } }],
  };
}

function keys(count: number): object {
  return Object.fromEntries(times(count, (i) => [`key ${i}`, 0]));
}

function words(count: number): string {
  return times(count, (i) => WORDS[(i * 7919) % WORDS.length]!).join(" ");
}

function letters(count: number): string {
  return times(count, (i) => String.fromCharCode(97 + ((Math.imul(i, 2_654_435_761) >>> 16) % 26))).join("");
}

function times<T>(count: number, make: (index: number) => T): T[] {
  return Array.from({ length: count }, (_, index) => make(index));
}
