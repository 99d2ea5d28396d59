/** Messages of proto/external_processor.proto as the gRPC library gives and takes them: what was not sent is undefined. */
export interface ProcessingRequest {
  readonly requestHeaders?: HttpHeaders;
  readonly responseHeaders?: HttpHeaders;
  readonly requestBody?: HttpBody;
  readonly responseBody?: HttpBody;
  readonly requestTrailers?: object;
  readonly responseTrailers?: object;
  readonly metadataContext?: { readonly filterMetadata?: Readonly<Record<string, Struct>> };
  readonly attributes?: Readonly<Record<string, Struct>>;
  readonly observabilityMode?: boolean;
  readonly protocolConfig?: { readonly requestBodyMode?: number; readonly responseBodyMode?: number };
}

export interface HttpHeaders {
  readonly headers?: { readonly headers?: readonly HeaderValue[] };
  readonly endOfStream?: boolean;
}

export interface HttpBody {
  readonly body?: Buffer;
  readonly endOfStream?: boolean;
}

export interface HeaderValue {
  readonly key?: string;
  readonly value?: string;
  readonly rawValue?: Buffer;
}

export interface ProcessingResponse {
  readonly requestHeaders?: CommonReply;
  readonly responseHeaders?: CommonReply;
  readonly requestBody?: CommonReply;
  readonly responseBody?: CommonReply;
  readonly requestTrailers?: object;
  readonly responseTrailers?: object;
  readonly immediateResponse?: ImmediateResponse;
  readonly dynamicMetadata?: Struct;
}

export interface CommonReply {
  readonly response?: {
    readonly headerMutation?: HeaderMutation;
    readonly bodyMutation?: {
      readonly body?: Buffer;
      readonly streamedResponse?: { readonly body?: Buffer; readonly endOfStream?: boolean };
    };
    readonly clearRouteCache?: boolean;
  };
}

export interface ImmediateResponse {
  readonly status: { readonly code: number };
  readonly headers: HeaderMutation;
  readonly body: Buffer;
  readonly details: string;
}

export interface HeaderMutation {
  readonly setHeaders?: readonly { readonly header: HeaderValue; readonly appendAction: number }[];
  readonly removeHeaders?: readonly string[];
}

/** google.protobuf.Struct. */
export interface Struct {
  readonly fields?: Readonly<Record<string, StructValue>>;
}

export interface StructValue {
  readonly stringValue?: string;
  readonly structValue?: Struct;
  readonly listValue?: { readonly values?: readonly StructValue[] };
}
