/** What a picker reads of a message of Envoy's external processing: one of the first six is there. */
export interface ProcessingRequest {
  requestHeaders: ProxiedHeaders | undefined;
  responseHeaders: ProxiedHeaders | undefined;
  requestBody: ProxiedBody | undefined;
  responseBody: ProxiedBody | undefined;
  requestTrailers: boolean;
  responseTrailers: boolean;
  /** Addresses that the proxy allows; undefined where it leaves the choice open. */
  subset: readonly string[] | undefined;
  /** Address that a response came from, where the proxy states it. */
  served: string | undefined;
  /** The same as the proxy's own attribute has it: with whom it was connected. */
  upstream: string | undefined;
  modes: BodyModes | undefined;
  /** The proxy waits for no reply, and reads none. */
  isObserved: boolean;
}

export interface ProxiedHeaders {
  /** Names and values in turn, pseudo-headers such as :path among them. */
  readonly flat: readonly string[];
  readonly ends: boolean;
}

export interface ProxiedBody {
  readonly body: Buffer;
  readonly ends: boolean;
}

/** How bodies come. */
export interface BodyModes {
  readonly request: number;
  readonly response: number;
}

/** How Envoy sends a body (envoy.extensions.filters.http.ext_proc.v3.ProcessingMode.BodySendMode). */
export const BODY_MODE = {
  none: 0,
  streamed: 1,
  buffered: 2,
  bufferedPartial: 3,
  fullDuplexStreamed: 4,
  grpc: 5,
} as const;

/** What a message of Envoy's is answered by: the kinds are the numbers of their fields. */
export type ProcessingResponse = PhaseReply | TrailersReply | ImmediateReply;

export const REPLY = {
  requestHeaders: 1,
  responseHeaders: 2,
  requestBody: 3,
  responseBody: 4,
  requestTrailers: 5,
  responseTrailers: 6,
  immediate: 7,
} as const;

/** An answer to headers, or to a body. */
export interface PhaseReply {
  readonly kind: 1 | 2 | 3 | 4;
  readonly headers?: HeaderChanges | undefined;
  readonly body?: Buffer | undefined;
  /** `body` is a piece of a stream, the last one where true; undefined where it takes a whole one's place. */
  readonly ends?: boolean;
  /** Where the request goes: metadata for load balancing, by which the route is chosen anew. */
  readonly destination?: string;
}

export interface TrailersReply {
  readonly kind: 5 | 6;
}

/** An answer in place of any endpoint's. */
export interface ImmediateReply {
  readonly kind: 7;
  readonly status: number;
  readonly headers: HeaderChanges;
  readonly body: Buffer;
  readonly details: string;
}

export interface HeaderChanges {
  /** Each takes the place of what there is of its name. */
  readonly set: readonly (readonly [name: string, value: string])[];
  readonly removed?: readonly string[] | undefined;
}
