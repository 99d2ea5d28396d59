import type { Refusal } from "../http/errors.ts";
import type { OwnHeaders } from "../http/headers.ts";
import type { ClientWriter } from "./client-writer.ts";
import type { NameSwap } from "./name-swap.ts";

/** The client of a request, as far as its answer goes to it. */
export interface ClientSide {
  readonly writer: ClientWriter;
  /** Of the answer's head; 0 before it is sent. */
  readonly status: number;
  /** Where it asked for a model of another name than answers. */
  readonly nameSwap: NameSwap | undefined;
  ownHeaders(endpoint: string, reason: string): OwnHeaders;
  answerRefusal(refused: Refusal, endpoint: string): void;
  /** A piece of the answer that does not wait for its client was written. */
  written(): void;
}
