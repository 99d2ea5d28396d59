import type { ServerResponse } from "node:http";
import { StubEngine, answer, modelsText } from "../../live/discovery/stub-engine.ts";

const USAGE = { prompt_tokens: 100, completion_tokens: 3, total_tokens: 103 };

/** What a streamed completion is made of. */
export const EVENTS = [0, 1, 2].map(
  (i) => `data: {"choices":[{"index":0,"text":"t${i}","finish_reason":${i === 2 ? '"stop"' : "null"}}]}\n\n`,
);

/** An engine that serves completions, streamed or whole. */
export class CompletionEngine {
  readonly stub: StubEngine;
  /** It answers 500. */
  fails = false;
  /** It keeps requests without a byte. */
  holds = false;
  served = 0;
  /** Requests that it keeps. */
  readonly held: (() => void)[] = [];

  private constructor(stub: StubEngine) {
    this.stub = stub;
    stub.models = (request, response): void => {
      if (request.url === "/v1/models") return answer(200, modelsText("tiny"))(request, response);
      let body = "";
      request.on("data", (chunk: Buffer) => (body += chunk.toString()));
      request.on("end", () => this.#answer(body, response));
      return undefined;
    };
  }

  static async start(): Promise<CompletionEngine> {
    return new CompletionEngine(await StubEngine.start());
  }

  get url(): string {
    return this.stub.url;
  }

  /** Answers what it kept, and keeps nothing any more. */
  release(): void {
    this.holds = false;
    for (const answerNow of this.held.splice(0)) answerNow();
  }

  #answer(body: string, response: ServerResponse): void {
    if (this.fails) return void response.writeHead(500).end("no");
    if (this.holds) {
      this.held.push(() => this.#answer(body, response));
      return;
    }
    this.served++;
    if (body.includes('"stream":true')) {
      response.writeHead(200, { "content-type": "text/event-stream" });
      return void response.end(`${EVENTS.join("")}data: [DONE]\n\n`);
    }
    const whole = { choices: [{ index: 0, text: "x", finish_reason: "stop" }], usage: USAGE };
    response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(whole));
  }
}

/** An endpoint as a source names it. */
export function target(id: string, url: string) {
  return {
    id,
    url,
    dataParallelRank: undefined,
    apiKey: undefined,
    labels: {},
    cordoned: false,
    kvCapacityTokens: undefined,
    concurrencyMax: undefined,
  };
}
