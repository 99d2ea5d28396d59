import { textBetween, type EmulatedSequence } from "../generation/sequence.ts";
import type { ServedRequest } from "../http/exchange.ts";
import { chatFinish, type ChatAnswerContext } from "./chat-body.ts";
import { chatLogprobs } from "./logprobs.ts";
import type { ToolCallText } from "./tool-call.ts";
import { TokenStream } from "./token-stream.ts";
import { finalUsageJson, runningUsage, totalUsage, type UsageTotals } from "./usage.ts";

/** A chat answer as an event stream. */
export class ChatStream extends TokenStream {
  readonly #context: ChatAnswerContext;
  readonly #head: string;

  constructor(exchange: ServedRequest, context: ChatAnswerContext, sequences: readonly EmulatedSequence[]) {
    super(exchange, sequences);
    this.#context = context;
    const { id, created, model } = context;
    const names = `"id":${JSON.stringify(id)},"object":"chat.completion.chunk","created":${created}`;
    this.#head = `{${names},"model":${JSON.stringify(model)},"choices":[`;
  }

  /** One role event per choice. It leaves together with the first token. */
  protected open(): void {
    const [first] = this.sequences;
    if (first === undefined) return;
    const ids = this.#context.sampling.returnTokenIds ? `[${first.prompt.join(",")}]` : "null";
    const usage = runningUsage("chat", this.#context, running(first, 0));
    for (const { choice } of this.sequences) {
      const delta = `{"index":${choice},"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}`;
      this.stream.data(`${this.#head}${delta}]${usage},"prompt_token_ids":${ids},"prompt_text":null}`);
    }
  }

  protected tokens(sequence: EmulatedSequence, from: number, to: number, last: boolean): void {
    const { toolCall } = this.#context;
    if (toolCall !== undefined) {
      this.#toolTokens(toolCall, sequence, from, to, last);
      return;
    }
    const delta = `{"content":${JSON.stringify(textBetween(sequence.plan, from, to))}}`;
    this.#event(sequence, delta, from, to, last);
  }

  protected close(): void {
    const { includeUsage, promptTokensDetails, blockTokens, fingerprint } = this.#context;
    if (includeUsage) {
      const usage = finalUsageJson("chat", totalUsage(this.sequences, blockTokens), promptTokensDetails);
      this.stream.data(`${this.#head}],"usage":${usage},"system_fingerprint":${JSON.stringify(fingerprint)}}`);
    }
    this.stream.data("[DONE]");
  }

  /** One event per change that a client can see: most tokens of a call's frame make none. */
  #toolTokens(toolCall: ToolCallText, sequence: EmulatedSequence, from: number, to: number, last: boolean): void {
    const start = textBetween(sequence.plan, 0, from).length;
    const end = start + textBetween(sequence.plan, from, to).length;
    const { named, arguments: text } = toolCall.delta(start, end);
    const { tooling } = this.#context.request;
    if (named && tooling.kind === "call") {
      const id = JSON.stringify(this.#context.toolCallIds[sequence.choice] ?? "");
      const called = `{"id":${id},"type":"function","index":0,"function":{"name":${JSON.stringify(tooling.name)}}}`;
      this.#event(sequence, `{"content":null,"tool_calls":[${called}]}`, from, to, false);
    }
    const called = `{"index":0,"function":{"arguments":${JSON.stringify(text)}}}`;
    const delta = text === "" ? "{}" : `{"content":null,"tool_calls":[${called}]}`;
    if (text !== "" || last) this.#event(sequence, delta, from, to, last);
  }

  #event(sequence: EmulatedSequence, delta: string, from: number, to: number, last: boolean): void {
    const { sampling, tokenizer, includeUsage, fingerprint, request } = this.#context;
    const { plan, choice } = sequence;
    const top = request.topLogprobs;
    const scores =
      top === undefined ? "null" : JSON.stringify(chatLogprobs(tokenizer, plan.tokens.slice(from, to), top));
    const ids = sampling.returnTokenIds ? `[${plan.tokens.subarray(from, to).join(",")}]` : "null";
    const head = `${this.#head}{"index":${choice},"delta":${delta},"logprobs":${scores}`;
    const usage = runningUsage("chat", this.#context, running(sequence, to));
    if (!last) {
      this.stream.data(`${head},"finish_reason":null,"token_ids":${ids}}]${usage}}`);
      return;
    }
    const stop = JSON.stringify(sequence.finish === "stop" ? plan.stopReason : null);
    const end = `"finish_reason":"${chatFinish(this.#context, sequence)}","stop_reason":${stop},"token_ids":${ids}`;
    const mark = includeUsage ? "" : `,"system_fingerprint":${JSON.stringify(fingerprint)}`;
    this.stream.data(`${head},${end}}]${usage}${mark}}`);
  }
}

function running(sequence: EmulatedSequence, produced: number): UsageTotals {
  const promptTokens = sequence.prompt.length;
  return { promptTokens, completionTokens: produced, cachedTokens: 0, createdCacheTokens: 0 };
}
