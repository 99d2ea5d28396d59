import { Agent, request } from "node:http";

const agent = new Agent({ keepAlive: true, maxSockets: Infinity });

/** What one stream asks for; the same number asks the same. */
export interface Question {
  readonly number: number;
  readonly isChat: boolean;
  readonly usage: boolean;
  readonly tokens: number;
}

/** What a client got of a stream. */
export interface Received {
  readonly text: string;
  /** Why it is no whole and well-formed stream; "" where it is one. */
  readonly flaw: string;
  readonly promptTokens: number | undefined;
  readonly outputTokens: number | undefined;
  /** Arrivals of its events, in milliseconds. */
  readonly arrivals: readonly number[];
}

/** Greedy questions: chats and completions in turn, each with and without counts. */
export function questions(count: number, distinct: number, tokens: number): Question[] {
  return Array.from({ length: count }, (_, i) => ({
    number: i % distinct,
    isChat: i % 2 === 0,
    usage: i % 4 < 2,
    tokens,
  }));
}

export function keyOf({ number, isChat }: Question): string {
  return `${isChat ? "chat" : "completion"} ${number}`;
}

/** Asks one question; never rejects. */
export function listen(port: number, id: string, question: Question): Promise<Received> {
  const { number, isChat, usage, tokens } = question;
  const content = `Question ${number}: what became of the ${number} ships that left the harbor on day ${number * 7}?`;
  const body = JSON.stringify({
    model: "tiny",
    ...(isChat ? { messages: [{ role: "user", content }] } : { prompt: content }),
    stream: true,
    temperature: 0,
    max_tokens: tokens,
    ignore_eos: true,
    ...(usage && { stream_options: { include_usage: true } }),
  });
  const path = isChat ? "/v1/chat/completions" : "/v1/completions";
  const headers = { "content-type": "application/json", "content-length": Buffer.byteLength(body), "x-request-id": id };
  return new Promise((resolve) => {
    const stream = new StreamText(question);
    const sent = request({ host: "127.0.0.1", port, path, method: "POST", agent, headers }, (response) => {
      response.setEncoding("utf8");
      response.on("data", (text: string) => stream.add(text));
      response.on("error", () => {});
      response.on("close", () => resolve(stream.received(response.statusCode ?? 0)));
    });
    sent.on("error", (error) => resolve({ ...stream.received(0), flaw: error.message }));
    sent.end(body);
  });
}

interface Chunk {
  readonly id?: string;
  readonly error?: { readonly message: string };
  readonly choices?: readonly {
    readonly text?: string;
    readonly delta?: { readonly role?: string; readonly content?: string };
    readonly finish_reason?: string | null;
    readonly token_ids?: readonly number[] | null;
  }[];
  readonly usage?: {
    readonly prompt_tokens: number;
    readonly completion_tokens: number;
    readonly total_tokens: number;
  };
}

/** Reads a stream's events as a client does, and notes what is not well-formed. */
class StreamText {
  readonly #question: Question;
  readonly #arrivals: number[] = [];
  readonly #ids = new Set<string>();
  #rest = "";
  #text = "";
  #roles = 0;
  readonly #ends: string[] = [];
  #usage: Chunk["usage"];
  #isDone = false;
  #error = "";

  constructor(question: Question) {
    this.#question = question;
  }

  add(text: string): void {
    const now = performance.now();
    const events = (this.#rest + text).split("\n\n");
    this.#rest = events.pop() ?? "";
    for (const event of events) {
      this.#arrivals.push(now);
      this.#event(event.slice("data: ".length));
    }
  }

  received(status: number): Received {
    const { isChat, usage, tokens } = this.#question;
    const counts = this.#usage;
    const flaws = [
      status === 200 ? "" : `status ${status}`,
      this.#error,
      this.#isDone && this.#rest === "" ? "" : "no mark of completion",
      this.#ids.size === 1 ? "" : `${this.#ids.size} ids`,
      this.#roles === (isChat ? 1 : 0) ? "" : `${this.#roles} roles`,
      this.#ends.join() === "length" ? "" : `ended by ${this.#ends.join() || "nothing"}`,
      usage === (counts !== undefined) ? "" : "counts where none were asked for, or none",
      counts === undefined || counts.completion_tokens === tokens ? "" : `counts ${counts.completion_tokens} tokens`,
      counts === undefined || counts.total_tokens === counts.prompt_tokens + counts.completion_tokens ? "" : "sum",
    ];
    return {
      text: this.#text,
      flaw: flaws.find((flaw) => flaw !== "") ?? "",
      promptTokens: counts?.prompt_tokens,
      outputTokens: counts?.completion_tokens,
      arrivals: this.#arrivals,
    };
  }

  #event(data: string): void {
    if (this.#isDone) this.#error = "events behind the mark of completion";
    if (data === "[DONE]") {
      this.#isDone = true;
      return;
    }
    const { id, error, choices = [], usage } = JSON.parse(data) as Chunk;
    if (error !== undefined) this.#error = error.message;
    if (id !== undefined) this.#ids.add(id);
    if (usage !== undefined && usage !== null) this.#usage = usage;
    for (const { text, delta, finish_reason: finish, token_ids: ids } of choices) {
      this.#text += text ?? delta?.content ?? "";
      if (delta?.role !== undefined) this.#roles++;
      if (typeof finish === "string") this.#ends.push(finish);
      if (Array.isArray(ids)) this.#error = "token ids that were not asked for";
    }
  }
}
