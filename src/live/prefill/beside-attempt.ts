import type { EndpointId } from "#core/endpoint/endpoint.ts";
import type { Fault } from "#core/endpoint/fault.ts";
import type { Trouble } from "#core/path/wait-verdict.ts";
import type { Micros } from "#core/base/units.ts";
import { faultOfError, isFailedStatus } from "../answer/faults.ts";
import { nowMicros } from "../base/clock.ts";
import type { GatewayCounters } from "../base/gateway-counters.ts";
import type { ClientRequest, RequestLife } from "../request/client-request.ts";
import { upstreamHeaders } from "../http/headers.ts";
import { Attempt, type AttemptListener, type AttemptShared } from "../upstream/connection/attempt.ts";
import { AttemptSigns, type WatchedEndpoints } from "../upstream/connection/attempt-signs.ts";
import { type Prefilled, readPrefilled } from "./prefill-messages.ts";

/** The request whose prompt it is. */
export interface BesideAttemptRequest
  extends Pick<ClientRequest, "headers" | "requestId" | "limits">, Pick<RequestLife, "bug"> {
  readonly shared: AttemptShared & WatchedEndpoints & { readonly counters: GatewayCounters };
}

interface Outcome {
  readonly prefilled: (prefilled: Prefilled) => void;
  readonly failed: (fault: Fault) => void;
}

/** The prompt's half of a request that two endpoints got at once. */
export class BesideAttempt implements AttemptListener {
  readonly #exchange: BesideAttemptRequest;
  readonly #endpoint: EndpointId;
  readonly #outcome: Outcome;
  readonly #signs: AttemptSigns;
  #attempt: Attempt | undefined;
  #status = 0;
  #chunks: Buffer[] = [];
  #bytes = 0;
  #over = false;
  #aborted = false;

  constructor(exchange: BesideAttemptRequest, endpoint: EndpointId, outcome: Outcome) {
    this.#exchange = exchange;
    this.#endpoint = endpoint;
    this.#outcome = outcome;
    this.#signs = new AttemptSigns(exchange.shared, endpoint, nowMicros(), false);
  }

  send(path: string, body: Buffer): void {
    const { shared, headers: given, requestId, limits } = this.#exchange;
    const upstream = shared.pools.get(this.#endpoint);
    if (upstream === undefined) return this.#fail("connect");
    if (upstream.inFlight >= limits.upstreamConnectionsMax) return this.#fail("saturated");
    const headers = upstreamHeaders(given, upstream.entry, {
      requestId,
      dropAuthorization: shared.keepsAuthorization,
      withheld: shared.engineFields.headers,
    });
    this.#attempt = new Attempt(upstream, { path, headers, body }, this);
    this.#attempt.send();
  }

  abort(): void {
    this.#aborted = true;
    this.#end();
  }

  /** The endpoint's trouble, while it is waited for. */
  trouble(at: Micros, reads: boolean): Trouble | undefined {
    if (this.#over) return undefined;
    this.#signs.sweep(at, reads);
    return this.#signs.trouble(at);
  }

  answerStarted(status: number): void {
    this.#signs.alive();
    this.#status = status;
  }

  answerData(chunk: Buffer): void {
    this.#signs.alive();
    this.#bytes += chunk.length;
    if (this.#bytes > this.#exchange.limits.answerBytesInspected) this.#fail("garbage");
    else this.#chunks.push(chunk);
  }

  answerEnded(): void {
    const body = Buffer.concat(this.#chunks);
    if (this.#over) return;
    // What one engine turns down the other one does too, and its answer is the client's.
    const turnsDown = this.#status !== 200 && !isFailedStatus(this.#status);
    const prefilled = turnsDown ? undefined : readPrefilled(this.#status, body);
    if (typeof prefilled === "string") return this.#fail(prefilled);
    this.#over = true;
    if (prefilled === undefined) return;
    this.#signs.completed(undefined, nowMicros());
    this.#outcome.prefilled(prefilled);
  }

  attemptReconnects(): void {
    this.#exchange.shared.counters.reconnects++;
  }

  attemptBroke(error: Error): void {
    this.#fail(this.#status === 0 ? (faultOfError(error) ?? "connect") : "cut");
  }

  /** Whoever is just sending it goes on first. */
  #fail(fault: Fault): void {
    if (this.#over) return;
    this.#end();
    queueMicrotask(() => {
      try {
        if (!this.#aborted) this.#outcome.failed(fault);
      } catch (error) {
        this.#exchange.bug(error);
      }
    });
  }

  #end(): void {
    this.#over = true;
    this.#attempt?.abort();
    this.#chunks = [];
  }
}
