/** How answers of a route are read. "other" passes them unread but for what all have in common. */
export type Dialect = "chat" | "completions" | "messages" | "responses" | "other";

/** One kind of inference request. */
export interface Route {
  /** For metrics: a closed set. */
  readonly pattern: "/v1/chat/completions" | "/v1/completions" | "/v1/*";
  readonly dialect: Dialect;
  /** The engine counts the prompt's tokens and computes nothing: no prefill, nothing for its cache. */
  readonly countsOnly?: true;
}

const ROUTES: ReadonlyMap<string, Route> = new Map<string, Route>([
  ["/v1/chat/completions", { pattern: "/v1/chat/completions", dialect: "chat" }],
  ["/v1/completions", { pattern: "/v1/completions", dialect: "completions" }],
  ["/v1/messages", { pattern: "/v1/*", dialect: "messages" }],
  ["/v1/messages/count_tokens", { pattern: "/v1/*", dialect: "other", countsOnly: true }],
  ["/v1/responses", { pattern: "/v1/*", dialect: "responses" }],
]);

const OTHER: Route = { pattern: "/v1/*", dialect: "other" };

/** The route of a path under /v1, without a trailing slash or a query. */
export function routeOf(path: string): Route {
  return ROUTES.get(path) ?? OTHER;
}

export function isKnownRoute(path: string): boolean {
  return ROUTES.has(path);
}
