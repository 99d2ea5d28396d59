import type { KeptReason } from "#core/request/cascade-input.ts";
import { type AnswerWorth, Cascade, type CascadeHost } from "#core/path/cascade/cascade.ts";
import type { CascadeJudge, CascadeSpec, CascadeStep } from "#core/path/cascade/cascade-judge.ts";
import type { RouteRequest } from "#core/request/request.ts";
import type { Micros } from "#core/base/units.ts";
import { nowMicros } from "../base/clock.ts";
import type { AnswerJudge, JudgedAttempts, JudgedRequest } from "../answer/answer-judge.ts";
import { AskerLeft } from "../base/loop-turn.ts";
import { type ParsedRequest, truncated } from "../request/parse-request.ts";
import { withFields } from "../http/request-body.ts";
import { ASKED_ANEW, FIRST_BYTES } from "#core/path/path-event.ts";
import type { Dialect } from "../http/route.ts";
import type { TokenizedPrompt, Tokenizer } from "../tokenizer/text/tokenizer.ts";

/** What became of an answer of a cascade, or of a request to one: unjudged ones went to its last model at once. */
export type CascadeVerdict = KeptReason | "escalated" | "unjudged";

/** What a request has of all cascades of its gateway. */
interface CascadeRoom {
  readonly desk: CascadeJudge;
  readonly host: CascadeHost;
  count(cascade: string, verdict: CascadeVerdict): void;
}

interface Asked {
  readonly parsed: ParsedRequest;
  /** As the client sent it. */
  readonly body: Buffer;
  readonly dialect: Dialect;
}

/**
 * One request on its way through a cascade. While its answer is judged nothing of it reaches the client; then it
 * passes, or it is given up and the next model is asked. Log-probabilities that only the gateway asked for are kept
 * from the client.
 */
export class CascadeRun implements AnswerJudge {
  readonly #cascades: CascadeRoom;
  readonly #spec: CascadeSpec;
  readonly stage: Cascade;
  readonly #asked: Asked;
  /** What is added to the body where the client did not ask for log-probabilities. */
  readonly #added: object | undefined;
  decidedAt: Micros | undefined;
  /** As the router knows it; undefined before it does. */
  #request: RouteRequest | undefined;
  /** The gateway asks for the counts of the stream. */
  #hidesUsage = false;
  #sum = 0;
  #tokens = 0;
  #heldBytes = 0;
  /** There is no room for more. */
  #full = false;
  /** What is left of the answer at hand is to wait, since the next model's tokens are not known yet. */
  #waiting: (() => void)[] | undefined;

  constructor(cascades: CascadeRoom, spec: CascadeSpec, asked: Asked) {
    this.#cascades = cascades;
    this.#spec = spec;
    this.stage = new Cascade(spec, cascades.desk, cascades.host);
    this.#asked = asked;
    this.#added = logprobFields(asked.parsed, asked.dialect);
  }

  arrives(request: RouteRequest, hidesUsage: boolean): void {
    this.#request = request;
    this.#hidesUsage = hidesUsage;
  }

  get step(): CascadeStep {
    return this.stage.step;
  }
  get judging(): boolean {
    return this.stage.judging;
  }

  get isReady(): boolean {
    return this.judging && (this.#full || this.#tokens >= this.#spec.judgedTokensMax);
  }

  get fields(): object | undefined {
    return this.step.logprobMin === undefined ? undefined : this.#added;
  }

  reset(): void {
    this.#release();
    this.#sum = 0;
    this.#tokens = 0;
    this.#full = false;
    this.#waiting = undefined;
    this.stage.attempted();
    if (!this.judging) this.decidedAt ??= nowMicros();
  }

  close(): void {
    this.#release();
    this.#waiting = undefined;
  }

  readEvent(bytes: Buffer, start: number, end: number): readonly [number, number] | undefined {
    const found = this.step.logprobMin === undefined ? undefined : readLogprobs(bytes, start, end);
    if (this.judging) {
      this.#sum += found?.sum ?? 0;
      this.#tokens += found?.tokens ?? 0;
      if (this.#cascades.desk.hold(end - start)) this.#heldBytes += end - start;
      else this.#full = true;
    }
    return found === undefined || this.#added === undefined ? undefined : [found.from, found.to];
  }

  readWhole(body: Buffer): Buffer {
    const found = this.step.logprobMin === undefined ? undefined : readLogprobs(body, 0, body.length);
    if (found === undefined) return body;
    this.#sum += found.sum;
    this.#tokens += found.tokens;
    if (this.#added === undefined) return body;
    return Buffer.concat([body.subarray(0, found.from), NULL, body.subarray(found.to)]);
  }

  holdFull(exchange: JudgedRequest): void {
    this.#keep(exchange, "held-bytes");
  }

  /** The answer passes. */
  #keep(exchange: JudgedRequest, why: KeptReason): void {
    if (!this.judging) return;
    this.stage.keep(exchange.routeId, this.#worth, why);
    this.#kept(why);
  }

  judge(exchange: JudgedRequest, forward: JudgedAttempts, goOn?: () => void): boolean {
    if (!this.judging) return false;
    if (this.#waiting !== undefined) {
      if (goOn !== undefined) this.#waiting.push(goOn);
      return true;
    }
    const kept = this.#full ? "held-bytes" : this.stage.keeps(this.#worth);
    if (kept !== undefined) {
      this.#keep(exchange, kept);
      return false;
    }
    return this.#askNext(exchange, forward, goOn);
  }

  #askNext(exchange: JudgedRequest, forward: JudgedAttempts, goOn: (() => void) | undefined): boolean {
    const { prompt, cacheSalt } = this.#asked.parsed;
    const { model } = this.stage.next!;
    if (prompt.source === undefined) return this.#escalated(exchange, forward, { ...this.#unread });
    const tokenizer = exchange.shared.tokenizer(model);
    const encoded = tokenizer.encode(prompt.source, { model, salt: cacheSalt }, exchange);
    if (!(encoded instanceof Promise)) return this.#escalated(exchange, forward, encoded, tokenizer);
    const waiting = goOn === undefined ? [] : [goOn];
    this.#waiting = waiting;
    encoded
      .then((known) => {
        if (this.#waiting !== waiting || exchange.state.kind !== "holding") return;
        this.#waiting = undefined;
        if (this.#escalated(exchange, forward, known, tokenizer)) return;
        const { carriage, content } = exchange.state;
        if (carriage === "stream" && content !== "silent") exchange.dispatch(FIRST_BYTES);
        for (const rest of waiting) rest();
      })
      .catch((error: unknown) => {
        if (!(error instanceof AskerLeft)) exchange.bug(error);
      });
    return true;
  }

  /** A prompt without text to read has no tokens for the next model either. */
  get #unread(): TokenizedPrompt {
    const { blocks, promptTokens } = this.#request!;
    return { blocks, promptTokens, exact: false, fellBack: false };
  }

  /** The next model is asked, if it can be; false where the answer at hand is kept. */
  #escalated(exchange: JudgedRequest, forward: JudgedAttempts, whole: TokenizedPrompt, tokenizer?: Tokenizer): boolean {
    const { parsed } = this.#asked;
    const { model } = this.stage.next!;
    const prompt = truncated(whole, parsed.fields);
    const next: RouteRequest = {
      ...this.#request!,
      model,
      promptTokens: prompt.promptTokens,
      promptTokensExact: prompt.exact && parsed.prompt.count === 1,
      blocks: prompt.blocks,
    };
    const after = this.stage.judge(exchange.routeId, this.#worth, next);
    if (after.kind === "keep") {
      this.#kept(after.why);
      return false;
    }
    this.#cascades.count(this.#spec.name, "escalated");
    this.#request = next;
    exchange.model = model;
    exchange.prompt = { promptTokens: next.promptTokens, exact: next.promptTokensExact };
    if (tokenizer !== undefined && prompt === whole) exchange.expectCount(tokenizer, prompt);
    forward.continueAt(after.decision, false);
    forward.content = { path: exchange.path, body: this.#bodyOf(exchange.stream, model) };
    exchange.dispatch(ASKED_ANEW);
    return true;
  }

  #bodyOf(stream: boolean, model: string): Buffer {
    const { body, parsed } = this.#asked;
    const options = { ...(parsed.fields?.["stream_options"] as object | undefined), include_usage: true };
    const usage = stream && this.#hidesUsage && { stream_options: { ...options, continuous_usage_stats: false } };
    return withFields(body, { model, ...usage, ...this.fields });
  }

  #kept(why: KeptReason): void {
    this.decidedAt = nowMicros();
    this.#waiting = undefined;
    this.#release();
    this.#cascades.count(this.#spec.name, why);
  }

  get #worth(): AnswerWorth {
    const tokens = this.#tokens;
    return { meanLogprob: tokens === 0 ? 0 : Math.min(this.#sum / tokens, 0) || 0, tokens };
  }

  #release(): void {
    this.#cascades.desk.letGo(this.#heldBytes);
    this.#heldBytes = 0;
  }
}

const NULL = Buffer.from("null");

/** Whether the tokens of an answer can be weighed: one answer of a chat or a completion, whose text is the model's own. */
export function isJudged({ fields, sequences }: ParsedRequest, dialect: Dialect): boolean {
  if (fields === undefined || sequences !== 1 || (dialect !== "chat" && dialect !== "completions")) return false;
  return fields["echo"] !== true && fields["use_beam_search"] !== true;
}

/** What makes an engine send its tokens' log-probabilities; undefined where the client asked for them itself. */
function logprobFields({ fields }: ParsedRequest, dialect: Dialect): object | undefined {
  const asked = fields?.["logprobs"] ?? null;
  if (dialect === "completions") return asked === null ? { logprobs: 0 } : undefined;
  return asked === true ? undefined : { logprobs: true };
}

/** The log-probabilities of one answer, or of one event of a stream. */
interface LogprobsFound {
  /** Where their value lies, its last byte excluded; all bytes between are one JSON value. */
  readonly from: number;
  readonly to: number;
  readonly sum: number;
  readonly tokens: number;
}

/**
 * Finds `"logprobs": VALUE` of the first choice in the bytes of OpenAI's JSON, a chat's or a completion's, and adds up the
 * tokens' values. Undefined where there is none but null, or where it is no JSON.
 *
 * Recognised by the name between bare quotes, which cannot stand inside a JSON string, where the quotes would be escaped.
 */
function readLogprobs(bytes: Buffer, start: number, end: number): LogprobsFound | undefined {
  const json = bytes.subarray(0, end);
  let from = json.indexOf(NAME, start);
  if (from < 0) return undefined;
  from += NAME.length;
  while (json[from] === COLON || json[from]! <= SPACE) from++;
  if (json[from] !== BRACE) return undefined;
  const to = endOfObject(json, from);
  if (to < 0) return undefined;
  try {
    const values = valuesOf(JSON.parse(json.toString("utf8", from, to)));
    let sum = 0;
    for (const value of values) sum += value;
    return { from, to, sum, tokens: values.length };
  } catch {
    return undefined;
  }
}

/** A chat lists its tokens, a completion their values; one that is null has none. */
function valuesOf(logprobs: unknown): readonly number[] {
  const { content, token_logprobs: listed } = logprobs as { readonly content?: unknown; token_logprobs?: unknown };
  const values: unknown[] = Array.isArray(listed)
    ? listed
    : Array.isArray(content)
      ? content.map((token) => (token as { readonly logprob?: unknown } | null)?.logprob)
      : [];
  return values.filter((value) => typeof value === "number");
}

/** Behind the brace that closes the one at `from`; -1 where none does. */
function endOfObject(json: Buffer, from: number): number {
  let depth = 0;
  for (let at = from; at < json.length; at++) {
    const byte = json[at];
    if (byte === QUOTE) {
      for (at++; at < json.length && json[at] !== QUOTE; at++) if (json[at] === BACKSLASH) at++;
    } else if (byte === BRACE) depth++;
    else if (byte === BRACE_CLOSED && --depth === 0) return at + 1;
  }
  return -1;
}

const NAME = Buffer.from('"logprobs"');
const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const BRACE = 0x7b;
const BRACE_CLOSED = 0x7d;
const COLON = 0x3a;
const SPACE = 0x20;
