/** How one request of a conversation went. */
export interface Turn {
  readonly status: number;
  readonly endpoint: string;
  readonly hitTokens: number;
  /** An answer with text and a finish_reason, and of a stream its mark of completion. */
  readonly whole: boolean;
  readonly millis: number;
  readonly text: string;
}

/** Requests that share a long beginning, so that one endpoint holds it. */
export class Conversation {
  readonly #url: string;
  readonly #model: string;
  readonly #opening: string;

  constructor(url: string, model: string, name: string) {
    this.#url = url;
    this.#model = model;
    this.#opening = Array.from({ length: 300 }, (_, i) => `${name} ${i} is remembered.`).join(" ");
  }

  async ask(question: string, stream: boolean, tokens = 8): Promise<Turn> {
    const since = performance.now();
    const answer = await this.#post(question, { stream, max_tokens: tokens });
    const text = await answer.text();
    const ended = /"finish_reason": ?"(?:stop|length)"/.test(text);
    return {
      status: answer.status,
      endpoint: answer.headers.get("x-gnomon-endpoint") ?? "",
      hitTokens: Number(answer.headers.get("x-gnomon-hit-tokens") ?? 0),
      whole: ended && (!stream || text.endsWith("data: [DONE]\n\n")),
      millis: performance.now() - since,
      text,
    };
  }

  /** A stream of so many tokens, once its first bytes are here. */
  begin(tokens: number): Promise<Response> {
    return this.#post("Go on and on.", { stream: true, max_tokens: tokens, ignore_eos: true });
  }

  #post(question: string, fields: Readonly<Record<string, unknown>>): Promise<Response> {
    const messages = [
      { role: "system", content: this.#opening },
      { role: "user", content: question },
    ];
    return fetch(`${this.#url}/v1/chat/completions`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ model: this.#model, messages, ...fields }),
    });
  }

  /** Warms one endpoint up and returns its id: the one that all but the first request went to. */
  async settle(): Promise<string> {
    let last = "";
    for (let i = 0; i < 20; i++) {
      const { endpoint, hitTokens, status, text } = await this.ask(`Question ${i}?`, i % 2 === 0);
      if (status !== 200) throw new Error(text);
      if (hitTokens > 0 && endpoint === last) return endpoint;
      last = endpoint;
    }
    throw new Error("the conversation never settled");
  }

  /** Half of them streams, all at once. */
  askAll(count: number): Promise<Turn[]> {
    return Promise.all(Array.from({ length: count }, (_, i) => this.ask(`Later question ${i}?`, i % 2 === 0)));
  }
}
