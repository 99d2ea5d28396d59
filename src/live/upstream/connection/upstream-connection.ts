import type { OnReadOpts } from "node:net";

import type { Client, Dispatcher } from "undici";

import { UpstreamReads } from "./upstream-reads.ts";

/** A request with a body that is there. */
export interface ConnectionRequest {
  readonly path: string;
  /** Names and values in turn; nothing of the connection or of the body's length is among them. */
  readonly headers: string[];
  readonly body: Buffer;
}

/**
 * A connection that is made when it is needed, and made anew where it closed, with one request at a time. All but the
 * payload of streams (`UpstreamReads`) is undici's.
 */
export class UpstreamConnection {
  readonly client: Client;
  readonly reads = new UpstreamReads();
  /** Answers that ended since it was made last. */
  #answers = 0;

  /** Makes its client with what is read from its connections. */
  constructor(makeClient: (onread: OnReadOpts) => Client) {
    this.client = makeClient(this.reads.onread);
    const isNew = (): void => void (this.#answers = 0);
    this.client.on("connect", isNew).on("disconnect", isNew);
  }

  /**
   * An end that comes now may be one that the engine decided on before it read the request: it had answered over this
   * connection, and nothing of this answer came.
   */
  get mayBeStale(): boolean {
    return this.#answers > 0 && !this.reads.came;
  }

  /** An answer is whole. */
  answered(): void {
    this.#answers++;
  }

  /** The last request is over; this one takes its place. */
  send({ path, headers, body }: ConnectionRequest, handler: Dispatcher.DispatchHandler): void {
    this.reads.begin();
    this.client.dispatch({ path, method: "POST", headers, body }, handler);
  }
}
