/** Where an answer was routed, as its header names it. */
export interface RoutedTo {
  readonly conversation: string;
  readonly at: number;
  readonly profile: string;
  readonly policyVersion: number;
  /** "" outside of a rollout. */
  readonly arm: string;
  readonly window: number;
}

const FAILURES_KEPT = 5;
/** Characters that a conversation begins with; they fill some blocks. */
const OPENING = "Show me more about the harbour. ".repeat(8);
const TURNS = 6;
const ANSWER_TOKENS = 24;

/**
 * Clients that hold one conversation after another, each turn of which sends all turns before it, every other one as a
 * stream. Half of them name their session; that of the others is inferred.
 */
export class Clients {
  requests = 0;
  failed = 0;
  readonly failures: string[] = [];
  readonly routed: RoutedTo[] = [];
  readonly #url: () => string;
  readonly #varied: boolean;
  /** While there is no gateway nobody asks, and what breaks then is no failure. */
  #paused = false;
  #stopped = false;
  readonly #running: Promise<void>[];

  /** With `varied`, questions and answers are of many lengths. */
  constructor(url: () => string, count: number, varied = false) {
    this.#url = url;
    this.#varied = varied;
    this.#running = Array.from({ length: count }, (_, client) => this.#client(client));
  }

  pause(): void {
    this.#paused = true;
  }

  resume(): void {
    this.#paused = false;
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    await Promise.all(this.#running);
  }

  async #client(client: number): Promise<void> {
    for (let number = 0; !this.#stopped; number++) {
      const conversation = `${client}-${number}`;
      const opening = OPENING.repeat(this.#varied ? 1 + (client % 7) ** 2 : 1);
      let messages = [{ role: "user", content: `${conversation}: ${opening}` }];
      for (let turn = 0; turn < TURNS && !this.#stopped;) {
        while (this.#paused && !this.#stopped) await new Promise((resolve) => setTimeout(resolve, 10));
        const named = client % 2 === 0 ? { "x-session-id": conversation } : {};
        const tokens = this.#varied ? ANSWER_TOKENS * (1 + ((client + 3 * number + 5 * turn) % 9)) : ANSWER_TOKENS;
        const answer = await this.#ask(conversation, named, messages, turn % 2 === 1, tokens);
        if (answer === undefined) continue;
        turn++;
        messages = [
          ...messages,
          { role: "assistant", content: answer },
          { role: "user", content: `And then? ${OPENING}` },
        ];
      }
    }
  }

  async #ask(
    conversation: string,
    named: Readonly<Record<string, string>>,
    messages: readonly object[],
    stream: boolean,
    tokens: number,
  ): Promise<string | undefined> {
    const at = Date.now();
    try {
      const response = await fetch(`${this.#url()}/v1/chat/completions`, {
        method: "POST",
        headers: { "content-type": "application/json", ...named },
        body: JSON.stringify({ messages, stream, max_completion_tokens: tokens }),
      });
      const text = await response.text();
      if (response.status !== 200 || text === "" || (stream && !text.trimEnd().endsWith("[DONE]"))) {
        throw new Error(`${response.status} ${text.slice(-200)}`);
      }
      this.requests++;
      this.#note(conversation, at, response.headers.get("x-gnomon-profile") ?? "");
      return "It went on.";
    } catch (error) {
      if (this.#paused) return undefined;
      this.failed++;
      if (this.failures.length < FAILURES_KEPT)
        this.failures.push(error instanceof Error ? error.message : String(error));
      return undefined;
    }
  }

  #note(conversation: string, at: number, header: string): void {
    const [profile = "", ...rest] = header.split("; ");
    const fields = new Map(rest.map((part) => part.split("=") as [string, string]));
    this.routed.push({
      conversation,
      at,
      profile,
      policyVersion: Number(fields.get("version") ?? 0),
      arm: fields.get("arm") ?? "",
      window: Number(fields.get("window") ?? -1),
    });
  }
}
