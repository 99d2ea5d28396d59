/** Bytes of about this size, made to be dear for who reads them. */
export type Shape = (bytes: number) => Buffer;

/** A piece repeated between a beginning and an end; `piece` gets its number. */
export function repeated(piece: (i: number) => string, begin = "", end = ""): Shape {
  return (bytes) => {
    const parts = [begin];
    for (let size = begin.length + end.length, i = 0; size < bytes; i++) {
      const part = piece(i);
      parts.push(part);
      size += part.length;
    }
    parts.push(end);
    return Buffer.from(parts.join(""), "latin1");
  };
}

/** The same for all that reads JSON, in the place of a value. */
export function jsonShapes(begin: string, end: string): Readonly<Record<string, Shape>> {
  const list = (piece: (i: number) => string): Shape => repeated(piece, `${begin}[`, `0]${end}`);
  return {
    "deep lists": (bytes) => Buffer.from(`${begin}${"[".repeat(bytes / 2)}${"]".repeat(bytes / 2)}${end}`),
    "deep lists, not closed": (bytes) => Buffer.from(`${begin}${"[".repeat(bytes)}`),
    "deep objects": (bytes) => Buffer.from(`${begin}${'{"a":'.repeat(bytes / 6)}0${"}".repeat(bytes / 6)}${end}`),
    "equal keys": repeated(() => '"k":0,', `${begin}{`, `"k":0}${end}`),
    "distinct keys": repeated((i) => `"k${i}":0,`, `${begin}{`, `"k":0}${end}`),
    "empty lists": list(() => "[],"),
    "empty objects": list(() => "{},"),
    numbers: list(() => "1,"),
    "a long number": repeated(() => "1234567890", begin, end),
    "a long string": repeated(() => "abcdefgh", `${begin}"`, `"${end}`),
    "a string, not closed": repeated(() => "abcdefgh", `${begin}"`, ""),
    "escapes in a string": repeated(() => '\\"\\n', `${begin}"`, `"${end}`),
    "escapes, not closed": repeated(() => "\\\\", `${begin}"`, ""),
    blanks: repeated(() => "  \t\n", begin, `0${end}`),
    quotes: repeated(() => '"', begin, end),
    braces: repeated(() => "}{", begin, end),
  };
}

export const METRIC_SHAPES: Readonly<Record<string, Shape>> = {
  "indented TYPE lines": repeated(() => " # TYPE a b\na 1\n"),
  "TYPE lines": repeated(() => "# TYPE a b\na 1\n"),
  "families, then one long line": (bytes) =>
    Buffer.concat([repeated(() => " # TYPE a b\na 1\n")(bytes / 2), Buffer.alloc(bytes / 2, "a")]),
  "TYPE lines of one long family": repeated(() => `# TYPE ${"f".repeat(200)} c\n${"f".repeat(200)} 1\n`),
  "distinct families": repeated((i) => `# TYPE f${i} c\nf${i} 1\n`),
  comments: repeated(() => "#\n"),
  "empty lines": repeated(() => "\n"),
  blanks: repeated(() => " \t"),
  "one long name": repeated(() => "n"),
  "short wanted lines": repeated(() => "vllm:num_requests_running 1\n"),
  "wanted lines, broken": repeated(() => "vllm:num_requests_running x\n"),
  "ranks of one page": repeated((i) => `vllm:num_requests_running{engine="${i}"} 1\n`),
  "labels of a sample": repeated((i) => `l${i}="x",`, "vllm:num_requests_running{", "} 1\n"),
  "equal labels": repeated(() => 'l="x",', "vllm:num_requests_running{", "} 1\n"),
  "label values, not closed": repeated(() => 'vllm:num_requests_running{a="\n'),
  "one label, not closed": repeated(() => "x", 'vllm:num_requests_running{a="', ""),
  "escapes of a label": repeated(() => '\\"\\n', 'vllm:num_requests_running{a="', '"} 1\n'),
  "commas of labels": repeated(() => ",", "vllm:num_requests_running{", "} 1\n"),
  "a long value": repeated(() => "1234567890", "vllm:num_requests_running ", "\n"),
  "combinations of adapters": repeated(
    (i) => `vllm:lora_requests_info{max_lora="4",running_lora_adapters="a${i},b${i}",waiting_lora_adapters=""} ${i}\n`,
  ),
  "adapters of one list": repeated((i) => `a${i},`, 'vllm:lora_requests_info{running_lora_adapters="', '"} 1\n'),
  GPUs: repeated((i) => `DCGM_FI_DEV_POWER_USAGE{UUID="GPU-${i}",Hostname="n"} 1\n`),
};

const CHUNK = '"id":"c","object":"chat.completion.chunk","created":1,"model":"m"';

/** Of a stream whose first events are one of a role and one with a token. */
export const STREAM_SHAPES: Readonly<Record<string, Shape>> = {
  events: repeated(
    (i) => `data: {${CHUNK},"choices":[{"index":0,"delta":{"content":"w${i}"},"finish_reason":null}]}\n\n`,
  ),
  "events with ids": repeated(
    (i) =>
      `data: {${CHUNK},"choices":[{"index":0,"delta":{"content":"w"},"logprobs":null,"finish_reason":null,"token_ids":[${i}]}]}\n\n`,
  ),
  "events of many ids": repeated(
    () =>
      `data: {${CHUNK},"choices":[{"index":0,"delta":{"content":"w"},"finish_reason":null,"token_ids":[${"1,".repeat(500)}1]}]}\n\n`,
  ),
  "one event of many ids": repeated(
    () => "1,",
    `data: {${CHUNK},"choices":[{"index":0,"delta":{"content":"w"},"finish_reason":null,"token_ids":[`,
    "1]}]}\n\n",
  ),
  "prompt ids": repeated(() => "1,", `data: {${CHUNK},"choices":[],"prompt_token_ids":[`, "1]}\n\n"),
  "events without a choice": repeated(() => `data: {"choices":[]}\n\n`),
  "events of counts": repeated(() => `data: {"choices":[],"usage":{"prompt_tokens":1}}\n\n`),
  "choices of an event": repeated(
    () => '{"index":0,"delta":{"content":"w"},"finish_reason":null},',
    `data: {${CHUNK},"choices":[`,
    "0]}\n\n",
  ),
  "names of an end": repeated(() => '"finish_reason":', `data: {"choices":[`, "0]}\n\n"),
  "names of content, blanks": repeated(() => '"content"   ', `data: {"choices":[`, "0]}\n\n"),
  "names of counts, blanks": repeated(() => '"usage"   ', `data: {"choices":[`, "0]}\n\n"),
  "empty events": repeated(() => "\n"),
  comments: repeated(() => ":\n\n"),
  "lines of one event": repeated(() => "data: x\n"),
  "carriage returns": repeated(() => "\r"),
  "lines with carriage returns": repeated(() => "data: x\r"),
  "one event without an end": repeated(() => "x", "data: "),
  "data that is no JSON": repeated(() => "data: {\n\n"),
  "quotes, not closed": repeated(() => `data: {"choices":[{"delta":{"content":"x}]}\n\n`),
  "deep event": (bytes) => Buffer.from(`data: {"choices":${"[".repeat(bytes / 2)}${"]".repeat(bytes / 2)}}\n\n`),
};

export const YAML_SHAPES: Readonly<Record<string, Shape>> = {
  "distinct keys": repeated((i) => `k${i}: 1\n`),
  "equal keys": repeated(() => "k: 1\n"),
  "keys of a flow map": repeated((i) => `k${i}: 1, `, "a: {", "k: 1}\n"),
  "list items": repeated(() => "- 1\n"),
  "items of a flow list": repeated(() => "1, ", "a: [", "1]\n"),
  "deep flow lists": (bytes) => Buffer.from(`a: ${"[".repeat(bytes / 2)}${"]".repeat(bytes / 2)}\n`),
  "deep flow lists, not closed": (bytes) => Buffer.from(`a: ${"[".repeat(bytes)}`),
  "deep flow maps": (bytes) => Buffer.from(`a: ${"{a: ".repeat(bytes / 5)}1${"}".repeat(bytes / 5)}\n`),
  "deep block maps": (bytes) => {
    const levels = Math.floor(Math.sqrt(bytes));
    return Buffer.from(Array.from({ length: levels }, (_, i) => `${" ".repeat(i)}a:\n`).join(""));
  },
  "deep block lists": repeated(() => "- ", "", "1\n"),
  comments: repeated(() => "#\n"),
  "empty lines": repeated(() => "\n"),
  blanks: repeated(() => " "),
  "a quote, not closed": repeated(() => "x", 'a: "'),
  "escapes of a quote": repeated(() => '\\n\\"', 'a: "', '"\n'),
  "quoted lines": repeated(() => "x\n\n", 'a: "', '"\n'),
  "a block text": repeated(() => "  x\n", "a: |\n"),
  "a plain text of many lines": repeated(() => "  x\n", "a:\n"),
  anchors: repeated((i) => `- &a${i} 1\n`),
  "aliases of one anchor": repeated(() => "- *a\n", "- &a 1\n"),
  "aliases of aliases": repeated((i) => (i === 0 ? "- &a0 [1]\n" : `- &a${i} [*a${i - 1},*a${i - 1}]\n`)),
  "aliases of nothing": repeated((i) => `- *a${i}\n`),
  tags: repeated(() => "- !!str 1\n"),
  "unknown tags": repeated(() => "- !x 1\n"),
  documents: repeated(() => "---\n"),
  "question marks": repeated(() => "? a\n"),
  colons: repeated(() => ": "),
  "merge keys": repeated(() => "<<: {a: 1}\n"),
};
