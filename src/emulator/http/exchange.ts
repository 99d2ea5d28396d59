import type { IncomingMessage, ServerResponse } from "node:http";
import { NO_FAULTS, type FaultSet } from "../fault/fault.ts";

/**
 * One HTTP request and its answer, written the way uvicorn writes it: lower-case names, `date` and `server` first, no
 * `connection` header.
 */
export interface ServedRequest {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  /** Path without the query. */
  readonly path: string;
  /** Value of the `x-request-id` response header; "" when the server sends none. */
  readonly requestId: string;
  /** Route template for the HTTP metrics; "none" where no route matched. */
  handler: string;
  /** Monotonic milliseconds at arrival. */
  readonly arrivedAtMs: number;
  /** Status sent; 0 until headers are out. */
  status: number;
  /** Value of `content-length` sent; 0 for a stream. */
  responseBytes: number;
  /** False on the two kinds of answers that leave CORS handling out: 401 and the 500 of a stopping server. */
  vary: boolean;
  /** What goes wrong with this answer on purpose. */
  faults: FaultSet;
}

export function newExchange(request: IncomingMessage, response: ServerResponse, requestId: string): ServedRequest {
  const url = request.url ?? "/";
  const query = url.indexOf("?");
  return {
    request,
    response,
    path: query < 0 ? url : url.slice(0, query),
    requestId,
    handler: "none",
    arrivedAtMs: performance.now(),
    status: 0,
    responseBytes: 0,
    vary: true,
    faults: NO_FAULTS,
  };
}

/** True while an answer can still be written. */
export function isOpen(exchange: ServedRequest): boolean {
  return !exchange.response.destroyed && !exchange.response.writableEnded;
}
