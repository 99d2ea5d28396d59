import { BadMessage, MessageReader, tagOf, WITH_LENGTH } from "./grpc/message-reader.ts";
import type { BodyModes, ProcessingRequest, ProxiedBody, ProxiedHeaders } from "./wire.ts";

const message = (field: number): number => tagOf(field, WITH_LENGTH);
const number = (field: number): number => tagOf(field, 0);

const PHASES: ReadonlySet<number> = new Set([2, 3, 4, 5, 6, 7].map(message));
/** Of a message that is no body's: a subset may name thousands of endpoints. */
const HEAD_BYTES_MAX = 1_048_576;
const SUBSET_NAMESPACE = "envoy.lb.subset_hint";
const SUBSET = "x-gateway-destination-endpoint-subset";
const NAMESPACE = "envoy.lb";
const SERVED = "x-gateway-destination-endpoint-served";
const UPSTREAM = "upstream.address";

/** Reads a message of the proxy, whose fields are in test/picker/proto/external_processor.proto; throws BadMessage where it is none. */
export function readProcessingRequest(bytes: Buffer): ProcessingRequest {
  const reader = new MessageReader(bytes);
  const request: ProcessingRequest = {
    requestHeaders: undefined,
    responseHeaders: undefined,
    requestBody: undefined,
    responseBody: undefined,
    requestTrailers: false,
    responseTrailers: false,
    subset: undefined,
    served: undefined,
    upstream: undefined,
    modes: undefined,
    isObserved: false,
  };
  let phases = 0;
  while (reader.next()) {
    // Of a oneof: of several, merged or not, implementations make different messages, and nobody sends them.
    if (PHASES.has(reader.tag) && phases++ > 0) throw new BadMessage("two phases of a request in one message");
    switch (reader.tag) {
      case message(2):
        checkHead(bytes);
        request.requestHeaders = readHeaders(reader);
        break;
      case message(3):
        checkHead(bytes);
        request.responseHeaders = readHeaders(reader);
        break;
      case message(4):
        request.requestBody = readBody(reader);
        break;
      case message(5):
        request.responseBody = readBody(reader);
        break;
      case message(6):
        reader.skip();
        request.requestTrailers = true;
        break;
      case message(7):
        reader.skip();
        request.responseTrailers = true;
        break;
      case message(8):
        readMetadata(reader, request);
        break;
      case message(9):
        readAttributes(reader, request);
        break;
      case number(10):
        request.isObserved = reader.varint() !== 0;
        break;
      case message(11):
        request.modes = readModes(reader);
        break;
      default:
        reader.skip();
    }
  }
  return request;
}

function checkHead({ length }: Buffer): void {
  if (length > HEAD_BYTES_MAX)
    throw new BadMessage(`headers in a message of ${length} bytes; ${HEAD_BYTES_MAX} at most`);
}

function readHeaders(reader: MessageReader): ProxiedHeaders {
  const flat: string[] = [];
  let ends = false;
  const outer = reader.enter();
  while (reader.next()) {
    if (reader.tag === message(1)) readHeaderMap(reader, flat);
    else if (reader.tag === number(3)) ends = reader.varint() !== 0;
    else reader.skip();
  }
  reader.leave(outer);
  return { flat, ends };
}

function readHeaderMap(reader: MessageReader, flat: string[]): void {
  const outer = reader.enter();
  while (reader.next()) {
    if (reader.tag === message(1)) readHeader(reader, flat);
    else reader.skip();
  }
  reader.leave(outer);
}

/** Envoy puts values into raw_value. */
function readHeader(reader: MessageReader, flat: string[]): void {
  let [key, value, rawValue] = ["", "", ""];
  const outer = reader.enter();
  while (reader.next()) {
    if (reader.tag === message(1)) key = reader.utf8();
    else if (reader.tag === message(2)) value = reader.utf8();
    else if (reader.tag === message(3)) rawValue = reader.latin1();
    else reader.skip();
  }
  reader.leave(outer);
  flat.push(key, rawValue === "" ? value : rawValue);
}

function readBody(reader: MessageReader): ProxiedBody {
  let body = EMPTY;
  let ends = false;
  const outer = reader.enter();
  while (reader.next()) {
    if (reader.tag === message(1)) body = reader.bytes();
    else if (reader.tag === number(2)) ends = reader.varint() !== 0;
    else reader.skip();
  }
  reader.leave(outer);
  return { body, ends };
}

function readModes(reader: MessageReader): BodyModes {
  let [request, response] = [0, 0];
  const outer = reader.enter();
  while (reader.next()) {
    if (reader.tag === number(1)) request = reader.varint();
    else if (reader.tag === number(2)) response = reader.varint();
    else reader.skip();
  }
  reader.leave(outer);
  return { request, response };
}

/** Of the filters' metadata, the two values that the protocol of pickers has. */
function readMetadata(reader: MessageReader, request: ProcessingRequest): void {
  const outer = reader.enter();
  while (reader.next()) {
    if (reader.tag !== message(1)) {
      reader.skip();
      continue;
    }
    const [namespace, struct] = readEntry(reader);
    if (namespace === SUBSET_NAMESPACE) request.subset = valueIn(reader.within(struct), SUBSET);
    else if (namespace === NAMESPACE) request.served = valueIn(reader.within(struct), SERVED)?.[0];
  }
  reader.leave(outer);
}

/** Of the attributes that the proxy is asked to send, a struct for each of its filters, the one that names the engine. */
function readAttributes(reader: MessageReader, request: ProcessingRequest): void {
  const [, struct] = readEntry(reader);
  request.upstream ??= valueIn(reader.within(struct), UPSTREAM)?.[0];
}

/** Of a map. */
function readEntry(reader: MessageReader): readonly [key: string, value: Buffer] {
  let key = "";
  let value = EMPTY;
  const outer = reader.enter();
  while (reader.next()) {
    if (reader.tag === message(1)) key = reader.utf8();
    else if (reader.tag === message(2)) value = reader.bytes();
    else reader.skip();
  }
  reader.leave(outer);
  return [key, value];
}

/** Texts of one field of a google.protobuf.Struct; undefined where it has none of that name. */
function valueIn(reader: MessageReader, name: string): string[] | undefined {
  let found: string[] | undefined;
  while (reader.next()) {
    if (reader.tag !== message(1)) {
      reader.skip();
      continue;
    }
    const [key, value] = readEntry(reader);
    if (key === name) found = textsOf(reader.within(value));
  }
  return found;
}

/** A text, or a list of them; none where the value is of another kind. */
function textsOf(reader: MessageReader): string[] {
  let texts: string[] = [];
  while (reader.next()) {
    if (reader.tag === message(3)) texts = [reader.utf8()];
    else if (reader.tag === message(6)) texts = listIn(reader);
    else reader.skip();
  }
  return texts;
}

function listIn(reader: MessageReader): string[] {
  const texts: string[] = [];
  const outer = reader.enter();
  while (reader.next()) {
    if (reader.tag !== message(1)) {
      reader.skip();
      continue;
    }
    const list = reader.enter();
    while (reader.next()) {
      if (reader.tag === message(3)) texts.push(reader.utf8());
      else reader.skip();
    }
    reader.leave(list);
  }
  reader.leave(outer);
  return texts;
}

const EMPTY: Buffer = Buffer.alloc(0);
