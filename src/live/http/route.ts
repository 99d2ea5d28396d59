/** How answers of a route are read. "other" passes them unread but for what all have in common. */
export type Dialect = "chat" | "completions" | "messages" | "responses" | "other";

/** One kind of inference request. */
export interface Route {
  /** For metrics: a closed set. */
  readonly pattern: string;
  readonly dialect: Dialect;
  /** The engine counts or renders the prompt's tokens and computes nothing: no prefill, nothing for its cache. */
  readonly countsOnly: boolean;
}

const route = (pattern: string, dialect: Dialect = "other", countsOnly = false): [string, Route] => [
  pattern,
  { pattern, dialect, countsOnly },
];

/** What vLLM serves for inference, OpenAI's and Anthropic's routes and its own, each taken by one engine. All take POST. */
const ROUTES: ReadonlyMap<string, Route> = new Map<string, Route>([
  route("/v1/chat/completions", "chat"),
  route("/v1/completions", "completions"),
  route("/v1/responses", "responses"),
  route("/v1/messages", "messages"),
  route("/v1/messages/count_tokens", "messages", true),
  route("/v1/embeddings"),
  route("/v1/chat/completions/batch"),
  route("/v1/chat/completions/render", "other", true),
  route("/v1/completions/render", "other", true),
  route("/v1/messages/render", "other", true),
  route("/v1/responses/render", "other", true),
  route("/pooling"),
  route("/classify"),
  route("/score"),
  route("/v1/score"),
  route("/rerank"),
  route("/v1/rerank"),
  route("/v2/rerank"),
  route("/generative_scoring"),
  route("/v1/systemone"),
  route("/tokenize", "other", true),
  route("/detokenize", "other", true),
]);

/** Transcriptions, translations and speech have names of their own in each engine. */
const AUDIO_PATH = /^\/v1\/audio\/[a-z_-]{1,64}$/;
const [, AUDIO] = route("/v1/audio/*");

/** What of the gateway's and the engines' routes is not in the table, for people who asked for something else. */
const BESIDE = ["/v1/audio/*", "/v1/responses/{id}", "/v1/responses/{id}/cancel", "GET /v1/models"];

/** The inference routes of a gateway. */
export class Routes {
  readonly #extra: ReadonlyMap<string, Route>;

  /** `extra` are further paths that take POST and go to one engine. */
  constructor(extra: readonly string[] = []) {
    this.#extra = new Map(extra.map((path) => route(path)));
  }

  /** The route of a path without a trailing slash or a query; undefined where there is none. */
  of(path: string): Route | undefined {
    return ROUTES.get(path) ?? (AUDIO_PATH.test(path) ? AUDIO : this.#extra.get(path));
  }

  /** All of them, for people. */
  list(): string {
    return [...ROUTES.keys(), ...BESIDE, ...this.#extra.keys()].join(", ");
  }
}
