import { randomUUID } from "node:crypto";
import type { IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";
import type { Refusal } from "../http/errors.ts";
import { STAYS } from "../base/loop-turn.ts";
import { clientNetwork } from "../http/client-network.ts";
import { givenRequestId } from "../http/identity.ts";
import type { BodyRoom } from "../http/body-room.ts";
import type { InFlight, Swept } from "../http/in-flight.ts";
import { readBody } from "../http/request-body.ts";
import { RequestHeaders } from "../http/headers.ts";

/** What requests beside inference share with all others. */
export interface BesideShared {
  readonly inFlight: InFlight;
  readonly bodies: BodyRoom;
  /** As of AttemptShared. */
  readonly keepsAuthorization: boolean;
  readonly engineFields: { readonly headers: ReadonlySet<string> };
}

/** A request that is passed on beside inference. While it is open a gateway that drains waits for it. */
export class BesideRequest implements Swept {
  slot = 0;
  readonly incoming: IncomingMessage;
  readonly headers: RequestHeaders;
  readonly requestId: string;
  /** That answers, where it is one. */
  endpoint = "";
  readonly #shared: BesideShared;
  readonly #aborted = new AbortController();
  readonly #abort = (): void => this.#aborted.abort();
  readonly #timer: NodeJS.Timeout;
  #bodyBytes = 0;

  /** `millisMax` bounds the whole. */
  constructor(shared: BesideShared, incoming: IncomingMessage, millisMax: number) {
    this.incoming = incoming;
    this.headers = new RequestHeaders(incoming.rawHeaders);
    this.requestId = givenRequestId(this.headers) || randomUUID();
    this.#shared = shared;
    this.#timer = setTimeout(this.#abort, millisMax);
    incoming.socket.once("close", this.#abort);
    shared.inFlight.add(this);
  }

  /** Aborts when the client leaves or the time is over. */
  get signal(): AbortSignal {
    return this.#aborted.signal;
  }

  /** What every call for it has in common. */
  get call() {
    const { headers, requestId } = this;
    const { keepsAuthorization: dropAuthorization, engineFields } = this.#shared;
    return { headers, requestId, dropAuthorization, withheld: engineFields.headers };
  }

  body(bytesMax: number): Promise<Buffer | Refusal> {
    return new Promise((resolve) => {
      const declaredLength = this.headers.get("content-length");
      readBody(this.incoming, {
        asker: STAYS,
        declaredLength,
        bytesMax,
        hold: (bytes) => this.#holdBody(bytes),
        done: resolve,
      });
    });
  }

  #holdBody(bytes: number): boolean {
    if (!this.#shared.bodies.take(bytes, { network: clientNetwork(this.incoming.socket.remoteAddress) })) return false;
    this.#bodyBytes += bytes;
    return true;
  }

  end(): void {
    clearTimeout(this.#timer);
    this.incoming.socket.removeListener("close", this.#abort);
    this.#shared.inFlight.remove(this);
    this.#shared.bodies.give(this.#bodyBytes);
    this.#bodyBytes = 0;
  }

  sweep(): void {}

  answersOn(socket: Duplex): boolean {
    return this.incoming.socket === socket && this.incoming.complete;
  }
}
