import { ERRORS, type Refusal, errorBody, errorHeaders } from "#live/http/errors.ts";
import type { Dialect } from "#live/http/route.ts";
import { DESTINATION } from "./processing-response.ts";
import {
  BODY_MODE,
  type BodyModes,
  type HeaderChanges,
  type ImmediateReply,
  type PhaseReply,
  type ProcessingRequest,
  type ProcessingResponse,
  REPLY,
} from "./wire.ts";

/** Envoy takes pieces of at most 64 KiB in full duplex. */
const PIECE_BYTES_MAX = 62 * 1024;

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
export function routedHeaders(destination: Destination): PhaseReply {
  return {
    kind: REPLY.requestHeaders,
    headers: destinationHeaders(destination),
    destination: destination.addresses,
  };
}

/** The answer to a body that came whole, which carries the destination; `body` where it is another one now. */
export function routedBody(destination: Destination, body: Buffer | undefined): PhaseReply {
  return {
    kind: REPLY.requestBody,
    headers: destinationHeaders(destination),
    body,
    destination: destination.addresses,
  };
}

/** A body in full duplex: in pieces, of which the last one ends it unless trailers follow. */
export function streamedBody(
  kind: typeof REPLY.requestBody | typeof REPLY.responseBody,
  body: Buffer,
  ends: boolean,
): PhaseReply[] {
  const pieces: PhaseReply[] = [];
  let at = 0;
  do {
    const end = Math.min(body.length, at + PIECE_BYTES_MAX);
    pieces.push({ kind, body: body.subarray(at, end), ends: ends && end === body.length });
    at = end;
  } while (at < body.length);
  return pieces;
}

/** Nothing to change. */
export const GO_ON = {
  requestHeaders: { kind: REPLY.requestHeaders },
  requestBody: { kind: REPLY.requestBody },
  requestTrailers: { kind: REPLY.requestTrailers },
  responseHeaders: { kind: REPLY.responseHeaders },
  responseBody: { kind: REPLY.responseBody },
  responseTrailers: { kind: REPLY.responseTrailers },
} as const;

/** What a message of the proxy is answered by where nothing is to change. */
export function unchanged(message: ProcessingRequest, modes: BodyModes): readonly ProcessingResponse[] {
  const { requestHeaders, responseHeaders, requestBody, responseBody } = message;
  if (requestHeaders !== undefined) return [GO_ON.requestHeaders];
  if (responseHeaders !== undefined) return [GO_ON.responseHeaders];
  if (requestBody !== undefined)
    return modes.request === BODY_MODE.fullDuplexStreamed
      ? streamedBody(REPLY.requestBody, requestBody.body, requestBody.ends)
      : [GO_ON.requestBody];
  if (responseBody !== undefined)
    return modes.response === BODY_MODE.fullDuplexStreamed
      ? streamedBody(REPLY.responseBody, responseBody.body, responseBody.ends)
      : [GO_ON.responseBody];
  if (message.requestTrailers) return [GO_ON.requestTrailers];
  return message.responseTrailers ? [GO_ON.responseTrailers] : [];
}

/** Answers in place of any endpoint. */
export function immediate(refused: Refusal, dialect: Dialect, own: boolean): ImmediateReply {
  const body = Buffer.from(errorBody(refused, dialect));
  const flat = errorHeaders(refused, body.length, own);
  const set: [string, string][] = [];
  for (let i = 0; i < flat.length; i += 2) if (flat[i] !== "content-length") set.push([flat[i]!, flat[i + 1]!]);
  return {
    kind: REPLY.immediate,
    status: ERRORS[refused.reason].status,
    headers: { set },
    body,
    details: `gnomon_${refused.reason.replaceAll("-", "_")}`,
  };
}

function destinationHeaders({ addresses, bodyBytes, withheld }: Destination): HeaderChanges {
  const set: [string, string][] = [[DESTINATION, addresses]];
  if (bodyBytes !== undefined) set.push(["content-length", String(bodyBytes)]);
  return { set, removed: withheld };
}
