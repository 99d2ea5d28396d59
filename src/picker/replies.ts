import { ERRORS, type Refusal, errorBody, errorHeaders } from "#live/http/errors.ts";
import type { Dialect } from "#live/http/route.ts";
import { DESTINATION, destinationMetadata } from "./destination.ts";
import type { CommonReply, HeaderMutation, ProcessingResponse } from "./wire.ts";

const OVERWRITE_OR_ADD = 2;
/** Envoy takes pieces of at most 64 KiB in full duplex. */
const PIECE_BYTES_MAX = 62 * 1024;

/** Nothing to change. */
export const CONTINUE: CommonReply = {};
/** What names the chosen endpoint to the proxy, twice: as header and as metadata, with one value. */
export interface Destination {
  /** `IP:PORT`, or several, separated by commas. */
  readonly addresses: string;
  /** Length of the body where the picker sends another one than it got. */
  readonly bodyBytes: number | undefined;
  /** Headers of the client that no engine is to get. */
  readonly withheld: readonly string[];
}

/** The answer to the request's headers, which carries the destination. */
export function routedHeaders(destination: Destination): ProcessingResponse {
  return {
    requestHeaders: { response: { headerMutation: destinationHeaders(destination), clearRouteCache: true } },
    dynamicMetadata: destinationMetadata(destination.addresses),
  };
}

/** The answer to a body that came whole, which carries the destination; `body` where it is another one now. */
export function routedBody(destination: Destination, body: Buffer | undefined): ProcessingResponse {
  const headerMutation = destinationHeaders(destination);
  const bodyMutation = body === undefined ? {} : { bodyMutation: { body } };
  return {
    requestBody: { response: { headerMutation, ...bodyMutation, clearRouteCache: true } },
    dynamicMetadata: destinationMetadata(destination.addresses),
  };
}

/** A body in full duplex: in pieces, of which the last one ends it unless trailers follow. */
export function* streamedBody(
  side: "requestBody" | "responseBody",
  body: Buffer,
  ends: boolean,
): Generator<ProcessingResponse> {
  let at = 0;
  do {
    const end = Math.min(body.length, at + PIECE_BYTES_MAX);
    const streamedResponse = { body: body.subarray(at, end), endOfStream: ends && end === body.length };
    yield { [side]: { response: { bodyMutation: { streamedResponse } } } };
    at = end;
  } while (at < body.length);
}

/** Answers in place of any endpoint. */
export function immediate(refused: Refusal, dialect: Dialect, own: boolean): ProcessingResponse {
  const body = Buffer.from(errorBody(refused, dialect));
  const flat = errorHeaders(refused, body.length, own);
  const set: [string, string][] = [];
  for (let i = 0; i < flat.length; i += 2) if (flat[i] !== "content-length") set.push([flat[i]!, flat[i + 1]!]);
  return {
    immediateResponse: {
      status: { code: ERRORS[refused.reason].status },
      headers: setHeaders(set),
      body,
      details: `gnomon_${refused.reason.replaceAll("-", "_")}`,
    },
  };
}

export function setHeaders(headers: readonly (readonly [name: string, value: string])[]): HeaderMutation {
  return {
    setHeaders: headers.map(([key, value]) => ({
      header: { key, rawValue: Buffer.from(value, "latin1") },
      appendAction: OVERWRITE_OR_ADD,
    })),
  };
}

function destinationHeaders({ addresses, bodyBytes, withheld }: Destination): HeaderMutation {
  const length: [string, string][] = bodyBytes === undefined ? [] : [["content-length", String(bodyBytes)]];
  const set = setHeaders([[DESTINATION, addresses], ...length]);
  return withheld.length === 0 ? set : { ...set, removeHeaders: [...withheld] };
}
