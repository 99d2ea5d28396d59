import { RequestHeaders } from "#live/http/headers.ts";
import type { HttpHeaders } from "./wire.ts";

/** The headers that a proxy sends, pseudo-headers such as :path among them. Envoy puts values into raw_value. */
export function proxyHeaders({ headers }: HttpHeaders): RequestHeaders {
  const flat: string[] = [];
  for (const { key = "", value, rawValue } of headers?.headers ?? []) {
    flat.push(key, rawValue === undefined || rawValue.length === 0 ? (value ?? "") : rawValue.toString("latin1"));
  }
  return new RequestHeaders(flat);
}
