import type { RawRequest } from "../gateway/stub-engine.ts";

/** An answer of a model: each token's bytes, of which a character may take several. */
export interface ModelAnswer {
  readonly promptTokens: number;
  readonly tokens: readonly Buffer[];
}

interface Asked {
  readonly isChat: boolean;
  /** Text of the answer that the prompt holds. */
  readonly text: string;
  /** Tokens of the answer that the prompt holds as ids. */
  readonly begun: number;
  readonly maxTokens: number;
  readonly stops: readonly string[];
  readonly includesStop: boolean;
  readonly sendsIds: boolean;
  readonly usage: boolean;
}

const FIRST_ID = 1_000;
/** Every prompt, as text. */
export const QUESTION = "hi";
/** Ids of the prompt: text of each is "P". */
const PROMPT_ID = 7;

/**
 * The data of the events with which vLLM answers: tokens in groups, text held back inside characters and for stop strings,
 * and the whole prompt as text where that ends inside a character.
 */
export function eventsOf(
  { promptTokens, tokens: all }: ModelAnswer,
  request: RawRequest,
  groups: readonly number[],
): string[] {
  const asked = read(request, promptTokens);
  const tokens = behind(all, asked.text);
  const id = `${asked.isChat ? "chatcmpl" : "cmpl"}-${request.index}`;
  const object = asked.isChat ? "chat.completion.chunk" : "text_completion";
  const head = { id, object, created: 1_700_000_000, model: "tiny" };
  const promptIds = asked.sendsIds ? Array.from({ length: promptTokens }, () => PROMPT_ID) : null;
  const events: object[] = [];
  if (asked.isChat) {
    const choice = { index: 0, delta: { role: "assistant", content: "" }, logprobs: null, finish_reason: null };
    events.push({ ...head, choices: [choice], prompt_token_ids: promptIds, prompt_text: null });
  }
  const detokenizer = new Detokenizer(promptTokens, tokens, asked);
  let made = 0;
  for (let group = 0; ; group++) {
    const size = groups[group % groups.length]!;
    const ids: number[] = [];
    while (ids.length < size && detokenizer.finish === undefined) ids.push(FIRST_ID + detokenizer.step());
    made += ids.length;
    const { finish } = detokenizer;
    const text = detokenizer.next();
    const end = { finish_reason: finish?.reason ?? null };
    const stop = { stop_reason: finish?.stop ?? null };
    const token_ids = asked.sendsIds ? ids : null;
    const choice = asked.isChat
      ? { index: 0, delta: { content: text }, logprobs: null, ...end, ...(finish && stop), token_ids }
      : {
          index: 0,
          text,
          logprobs: null,
          ...end,
          ...stop,
          prompt_token_ids: group === 0 ? promptIds : null,
          token_ids,
        };
    events.push({ ...head, choices: [choice] });
    if (finish !== undefined) break;
  }
  // A token of which it has a part is one of the prompt, and another one of the answer.
  const asText = all.length - tokens.length + Number(tokens[0]?.length !== all.at(-tokens.length)?.length);
  const prompt = promptTokens + asked.begun + asText;
  const usage = { prompt_tokens: prompt, total_tokens: prompt + made, completion_tokens: made };
  if (asked.usage) events.push({ ...head, choices: [], usage, system_fingerprint: "fp" });
  return [...events.map((event) => JSON.stringify(event)), "[DONE]"];
}

/** What is left of an answer behind a part of its text, which may end inside a token. */
function behind(tokens: readonly Buffer[], text: string): readonly Buffer[] {
  const rest = [...tokens];
  let bytes = Buffer.byteLength(text);
  while (bytes > 0 && bytes >= rest[0]!.length) bytes -= rest.shift()!.length;
  return bytes === 0 ? rest : [rest[0]!.subarray(bytes), ...rest.slice(1)];
}

/** The answer so far, where the request has it behind its prompt, or as a message that is to be continued. */
function textIn({ prompt, messages, continue_final_message: continues }: Readonly<Record<string, unknown>>): string {
  if (typeof prompt === "string") return prompt.slice(QUESTION.length);
  const last = (messages as readonly { readonly role: string; readonly content: string }[] | undefined)?.at(-1);
  return continues === true && last?.role === "assistant" ? last.content : "";
}

function read({ path, body }: RawRequest, promptTokens: number): Asked {
  const fields = JSON.parse(body.toString()) as Record<string, unknown>;
  const { prompt, stop, stream_options: options } = fields;
  const held = Array.isArray(prompt) ? prompt.length - promptTokens : 0;
  return {
    isChat: path.includes("chat"),
    text: textIn(fields),
    begun: held,
    maxTokens: fields["max_tokens"] as number,
    stops: stop === undefined ? [] : (stop as string[]),
    includesStop: fields["include_stop_str_in_output"] === true,
    sendsIds: fields["return_token_ids"] === true,
    usage: (options as { include_usage?: boolean } | undefined)?.include_usage === true,
  };
}

/** What vLLM answers that is asked for the text of tokens. */
export function detokenized({ tokens }: ModelAnswer, { body }: RawRequest): { readonly prompt: string } {
  const asked = JSON.parse(body.toString()) as { readonly tokens: readonly number[] };
  return { prompt: Buffer.concat(asked.tokens.map((id) => tokens[id - FIRST_ID]!)).toString() };
}

/** As vLLM's, over Hugging Face's DecodeStream. */
class Detokenizer {
  readonly #asked: Asked;
  readonly #tokens: readonly Buffer[];
  readonly #prompt: Buffer;
  /** Text of the prompt that the stream takes for known; "" where the prompt ends inside a character. */
  #known: string;
  #bytes: Buffer;
  #at: number;
  #text = "";
  #sent = 0;
  finish: { readonly reason: string; readonly stop: string | null } | undefined;

  constructor(promptTokens: number, tokens: readonly Buffer[], asked: Asked) {
    this.#asked = asked;
    this.#tokens = tokens;
    this.#prompt = Buffer.concat([Buffer.from("P".repeat(promptTokens)), ...tokens.slice(0, asked.begun)]);
    this.#bytes = this.#prompt;
    const text = this.#prompt.toString();
    this.#known = text.endsWith("\ufffd") ? "" : text;
    this.#at = asked.begun;
  }

  step(): number {
    const { begun, maxTokens, stops, includesStop } = this.#asked;
    const token = this.#at++;
    this.#bytes = Buffer.concat([this.#bytes, this.#tokens[token]!]);
    const text = this.#bytes.toString();
    if (!text.endsWith("\ufffd")) {
      this.#text += text.slice(this.#known.length);
      this.#known = text;
    }
    const found = stops.map((stop) => [stop, this.#text.indexOf(stop)] as const).filter(([, at]) => at >= 0);
    const [first] = found.sort((a, b) => a[1] + a[0].length - b[1] - b[0].length);
    if (first !== undefined) {
      this.#text = this.#text.slice(0, first[1] + (includesStop ? first[0].length : 0));
      this.finish = { reason: "stop", stop: first[0] };
    } else if (this.#at === this.#tokens.length) this.finish = { reason: "stop", stop: null };
    else if (this.#at - begun === maxTokens) this.finish = { reason: "length", stop: null };
    return token;
  }

  next(): string {
    const { stops, includesStop } = this.#asked;
    const holds = this.finish === undefined && !includesStop ? Math.max(1, ...stops.map((stop) => stop.length)) - 1 : 0;
    // In characters, as Python counts them.
    const shown = Array.from(this.#text)
      .slice(0, -holds || undefined)
      .join("");
    const end = Math.max(this.#sent, shown.length);
    const text = this.#text.slice(this.#sent, end);
    this.#sent = end;
    return text;
  }
}
