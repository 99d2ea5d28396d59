import type { Route, Routes } from "../http/route.ts";

/** What an inference request names: its route, and what the endpoint is asked for. */
export interface RequestTarget {
  readonly route: Route;
  /** Path and query as the endpoint gets them. */
  readonly path: string;
}

/** Reads request targets; clients send the same ones over and over. */
export class RequestTargets {
  readonly #routes: Routes;
  #target = "";
  #read: RequestTarget | undefined;

  constructor(routes: Routes) {
    this.#routes = routes;
  }

  /** Undefined where no route has this target. */
  of(target: string): RequestTarget | undefined {
    if (target !== this.#target) {
      this.#read = this.#parse(target);
      this.#target = target;
    }
    return this.#read;
  }

  #parse(given: string): RequestTarget | undefined {
    const target = given.startsWith("/") ? given : given.replace(ABSOLUTE, "");
    const query = target.indexOf("?");
    const path = withoutSlash(query < 0 ? target : target.slice(0, query));
    const route = this.#routes.of(path);
    return route && { route, path: query < 0 ? path : path + target.slice(query) };
  }
}

/** What a proxy is asked with: the target with its scheme and host before it (RFC 9112 3.2.2). */
const ABSOLUTE = /^https?:\/\/[^/?]*/i;

function withoutSlash(path: string): string {
  return path.endsWith("/") ? path.slice(0, -1) : path;
}
