import { MessageWriter } from "./grpc/message-writer.ts";
import { type HeaderChanges, type ImmediateReply, type PhaseReply, type ProcessingResponse, REPLY } from "./wire.ts";

const OVERWRITE_OR_ADD = 2;
const NAMESPACE = "envoy.lb";

/** The name of the chosen endpoint's address, in headers and metadata (Endpoint Picker Protocol). */
export const DESTINATION = "x-gateway-destination-endpoint";

/** Messages to the proxy, framed, in one piece. Their fields are in test/picker/proto/external_processor.proto. */
export function framedResponses(responses: readonly ProcessingResponse[]): Buffer {
  let bytes = 0;
  for (const one of responses) if ("body" in one) bytes += one.body?.length ?? 0;
  const writer = new MessageWriter(bytes);
  for (let i = responses.length - 1; i >= 0; i--) {
    const start = writer.length;
    writeResponse(writer, responses[i]!);
    writer.frame(start);
  }
  return writer.written();
}

function writeResponse(writer: MessageWriter, response: ProcessingResponse): void {
  switch (response.kind) {
    case REPLY.immediate:
      writeImmediate(writer, response);
      break;
    case REPLY.requestTrailers:
    case REPLY.responseTrailers:
      writer.message(response.kind, writer.length);
      break;
    default:
      writePhase(writer, response);
  }
}

function writePhase(writer: MessageWriter, { kind, headers, body, ends, destination }: PhaseReply): void {
  if (destination !== undefined) writeMetadata(writer, destination);
  const phase = writer.length;
  if (destination !== undefined) writer.number(CLEAR_ROUTE_CACHE, 1);
  if (body !== undefined) writeBody(writer, body, ends);
  if (headers !== undefined) writeHeaders(writer, headers, HEADER_MUTATION);
  if (writer.length > phase) writer.message(RESPONSE, phase);
  writer.message(kind, phase);
}

const RESPONSE = 1;
const HEADER_MUTATION = 2;
const BODY_MUTATION = 3;
const CLEAR_ROUTE_CACHE = 5;

function writeBody(writer: MessageWriter, body: Buffer, ends: boolean | undefined): void {
  const mutation = writer.length;
  if (ends === true) writer.number(2, 1);
  writer.bytes(1, body);
  if (ends !== undefined) writer.message(3, mutation);
  writer.message(BODY_MUTATION, mutation);
}

function writeHeaders(writer: MessageWriter, { set, removed = [] }: HeaderChanges, field: number): void {
  const start = writer.length;
  for (let i = removed.length - 1; i >= 0; i--) writer.text(2, removed[i]!);
  for (let i = set.length - 1; i >= 0; i--) {
    const [name, value] = set[i]!;
    const option = writer.length;
    writer.number(3, OVERWRITE_OR_ADD);
    const header = writer.length;
    writer.latin1(3, value);
    writer.text(1, name);
    writer.message(1, header);
    writer.message(1, option);
  }
  writer.message(field, start);
}

/** Where load balancing looks for the destination: a google.protobuf.Struct in another. */
function writeMetadata(writer: MessageWriter, destination: string): void {
  const start = writer.length;
  writer.text(3, destination);
  writeEntry(writer, DESTINATION, start);
  writer.message(5, start);
  writeEntry(writer, NAMESPACE, start);
  writer.message(8, start);
}

/** Makes what was written since `start`, a value, a field of a google.protobuf.Struct. */
function writeEntry(writer: MessageWriter, name: string, start: number): void {
  writer.message(2, start);
  writer.text(1, name);
  writer.message(1, start);
}

function writeImmediate(writer: MessageWriter, { kind, status, headers, body, details }: ImmediateReply): void {
  const start = writer.length;
  writer.text(5, details);
  writer.bytes(3, body);
  writeHeaders(writer, headers, 2);
  const code = writer.length;
  writer.number(1, status);
  writer.message(1, code);
  writer.message(kind, start);
}
