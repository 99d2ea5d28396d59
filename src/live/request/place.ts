import { type Route, routeOf } from "./route.ts";

/** Where an inference request goes. */
export interface Place {
  readonly route: Route;
  /** Path and query as the endpoint gets them. */
  readonly path: string;
  /** The path would let a client reach beyond /v1 on an engine whose server resolves dot segments. */
  readonly climbs: boolean;
}

/** Reads request targets; clients send the same ones over and over. */
export class Places {
  #target = "";
  #place: Place = placeOf("/v1/");

  of(target: string): Place {
    if (target !== this.#target) {
      this.#place = placeOf(target);
      this.#target = target;
    }
    return this.#place;
  }
}

/** Servers in front of an engine may decode a slash, or take a backslash for one, before they resolve. */
const DOT_SEGMENT = /(?:\/|%2f|\\|%5c)(?:\.|%2e){1,2}(?:\/|%2f|\\|%5c|$)/i;

/** What a proxy is asked with: the target with its scheme and host before it (RFC 9112 3.2.2). */
const ABSOLUTE = /^https?:\/\/[^/?]*/i;

function placeOf(given: string): Place {
  const target = given.startsWith("/") ? given : given.replace(ABSOLUTE, "");
  const query = target.indexOf("?");
  const path = withoutSlash(query < 0 ? target : target.slice(0, query));
  return {
    route: routeOf(path),
    path: query < 0 ? path : path + target.slice(query),
    climbs: DOT_SEGMENT.test(path),
  };
}

function withoutSlash(path: string): string {
  return path.endsWith("/") ? path.slice(0, -1) : path;
}
