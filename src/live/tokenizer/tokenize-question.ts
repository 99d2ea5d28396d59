import { Agent, request } from "undici";
import type { EndpointDirectory, EndpointEntry } from "../endpoints/endpoint-directory.ts";
import { EngineConnections } from "../tls/connections.ts";
import type { Ask } from "./vllm.ts";

const CONNECTIONS_MAX = 16;
const CONNECT_MILLIS_MAX = 10_000;
/** vLLM closes idle connections after 5 s. */
const KEEP_ALIVE_MILLIS = 4_000;
/** Longer answers are not read: a million tokens take about 8 MB. */
const ANSWER_BYTES_MAX = 16_777_216;

/** Asks the engines that serve a model, in turn, for the tokens of a prompt. */
export class TokenizeQuestions {
  readonly #directory: EndpointDirectory;
  readonly #agent: Agent;
  #turn = 0;

  constructor(directory: EndpointDirectory, connections: EngineConnections = new EngineConnections()) {
    this.#directory = directory;
    this.#agent = new Agent({
      connections: CONNECTIONS_MAX,
      pipelining: 1,
      keepAliveTimeout: KEEP_ALIVE_MILLIS,
      keepAliveMaxTimeout: KEEP_ALIVE_MILLIS,
      connect: connections.connector(CONNECT_MILLIS_MAX, directory.serverNameOf),
      allowH2: false,
    });
  }

  /** Rejects when no engine that serves the model is ready, or the one whose turn it is gives no list of tokens. */
  readonly ask: Ask = async (body, signal) => {
    const { url, apiKey } = this.#next(body["model"]);
    const { statusCode, body: answer } = await request(`${url}/tokenize`, {
      method: "POST",
      headers: {
        "content-type": "application/json",
        ...(apiKey === undefined ? {} : { authorization: `Bearer ${apiKey}` }),
      },
      body: JSON.stringify(body),
      dispatcher: this.#agent,
      signal,
    });
    const chunks: Buffer[] = [];
    let bytes = 0;
    for await (const chunk of answer as AsyncIterable<Buffer>) {
      bytes += chunk.length;
      if (bytes > ANSWER_BYTES_MAX) throw new Error("the answer to /tokenize is too long");
      chunks.push(chunk);
    }
    if (statusCode !== 200) throw new Error(`/tokenize answered ${statusCode}`);
    return tokensIn(Buffer.concat(chunks).toString("utf8"));
  };

  async close(): Promise<void> {
    await this.#agent.destroy();
  }

  #next(model: unknown): EndpointEntry {
    const able = this.#directory.all().filter((entry) => entry.state === "ready" && serves(entry, model));
    const entry = able[this.#turn++ % Math.max(1, able.length)];
    if (entry === undefined) throw new Error("no engine that serves the model is ready");
    return entry;
  }
}

function serves({ models }: EndpointEntry, model: unknown): boolean {
  return models.length === 0 || models.some((served) => served.id === model);
}

/** Messages say nothing of what was received: it may hold the prompt. */
function tokensIn(text: string): readonly number[] {
  const parsed = JSON.parse(text) as unknown;
  const tokens = parsed !== null && typeof parsed === "object" && "tokens" in parsed ? parsed.tokens : undefined;
  if (!Array.isArray(tokens) || !tokens.every((token) => Number.isSafeInteger(token))) {
    throw new Error("/tokenize answered without a list of tokens");
  }
  return tokens as readonly number[];
}
