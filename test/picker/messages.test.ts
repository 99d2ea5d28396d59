import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { BadMessage } from "#picker/grpc/message-reader.ts";
import { MessageFrames } from "#picker/grpc/message-frames.ts";
import { PHASE, proxiedBody, proxiedHeaders } from "#picker/proxy-messages.ts";
import { readProcessingRequest } from "#picker/processing-request.ts";
import { framedResponses } from "#picker/processing-response.ts";
import { type HeaderChanges, type ProcessingResponse as Reply, REPLY } from "#picker/wire.ts";
import { EXTERNAL_PROCESSOR, serviceOf } from "./protocol.ts";
import type { ProcessingRequest, ProcessingResponse } from "./proxy-messages.ts";

/** The gRPC library's own reading and writing of the same definitions. */
const { requestSerialize, responseDeserialize } = serviceOf("external_processor.proto", EXTERNAL_PROCESSOR)["Process"]!;
const text = fc.string({ unit: "grapheme", maxLength: 300 });
const name = fc.string({ unit: fc.constantFrom("a", "b", "z", "-", ":", "_"), minLength: 1, maxLength: 40 });
const bytes = fc.uint8Array({ maxLength: 40_000 }).map((array) => Buffer.from(array));
const latin1 = fc.uint8Array({ maxLength: 300 }).map((array) => Buffer.from(array).toString("latin1"));
const flag = fc.boolean();

test("a message of the proxy is read as it was written: headers, body, modes, subset and served", () => {
  const headers = fc.array(fc.tuple(name, latin1, flag), { maxLength: 40 });
  const phase = fc.constantFrom("request", "response");
  const subset = fc.option(fc.oneof(text, fc.array(text, { maxLength: 5 })), { nil: undefined });
  const modes = fc.option(fc.tuple(fc.nat(5), fc.nat(5)), { nil: undefined });
  const property = fc.property(
    headers,
    phase,
    flag,
    subset,
    text,
    modes,
    (fields, side, endOfStream, hint, served, both) => {
      const sent: ProcessingRequest = {
        [`${side}Headers`]: {
          endOfStream,
          headers: {
            headers: fields.map(([key, value, raw]) =>
              raw ? { key, rawValue: Buffer.from(value, "latin1") } : { key, value },
            ),
          },
        },
        metadataContext: {
          filterMetadata: {
            "envoy.lb": { fields: { "x-gateway-destination-endpoint-served": { stringValue: served }, other: {} } },
            "some.filter": { fields: { "x-gateway-destination-endpoint-subset": { stringValue: "not this" } } },
            ...(hint !== undefined && {
              "envoy.lb.subset_hint": {
                fields: {
                  "x-gateway-destination-endpoint-subset":
                    typeof hint === "string"
                      ? { stringValue: hint }
                      : { listValue: { values: hint.map((stringValue) => ({ stringValue })) } },
                },
              },
            }),
          },
        },
        attributes: {
          "envoy.filters.http.ext_proc": { fields: { "upstream.address": { stringValue: served }, other: {} } },
        },
        observabilityMode: true,
        ...(both !== undefined && { protocolConfig: { requestBodyMode: both[0], responseBodyMode: both[1] } }),
      };
      const read = readProcessingRequest(requestSerialize(sent));
      const flat = fields.flatMap(([key, value]) => [key, value]);
      assert.deepEqual(side === "request" ? read.requestHeaders : read.responseHeaders, { flat, ends: endOfStream });
      assert.deepEqual(read.subset, typeof hint === "string" ? [hint] : hint);
      assert.equal(read.served, served);
      assert.equal(read.upstream, served);
      assert.equal(read.isObserved, true);
      assert.deepEqual(read.modes, both && { request: both[0], response: both[1] });
    },
  );
  fc.assert(property);
});

test("a body is read as it was written, and so are trailers", () => {
  fc.assert(
    fc.property(bytes, flag, fc.constantFrom("request", "response"), (body, endOfStream, side) => {
      const read = readProcessingRequest(requestSerialize({ [`${side}Body`]: { body, endOfStream } }));
      assert.deepEqual(side === "request" ? read.requestBody : read.responseBody, { body, ends: endOfStream });
      assert.ok(readProcessingRequest(requestSerialize({ [`${side}Trailers`]: {} }))[`${side}Trailers`]);
    }),
  );
});

test("bytes that are no message are refused as such, and no prefix of a message is read past its end", () => {
  const whole = requestSerialize({
    requestHeaders: { headers: { headers: [{ key: "a", rawValue: Buffer.from("b") }] }, endOfStream: true },
    protocolConfig: { requestBodyMode: 4, responseBodyMode: 300 },
  });
  const property = fc.property(
    fc.oneof(
      bytes,
      fc.nat(whole.length).map((end) => whole.subarray(0, end)),
    ),
    (given) => {
      try {
        readProcessingRequest(Buffer.from(given));
      } catch (error) {
        assert.ok(error instanceof BadMessage);
      }
    },
  );
  fc.assert(property, { numRuns: 2_000 });
});

const varint = (value: bigint, bytes = 1): number[] =>
  value < 128n && bytes <= 1 ? [Number(value)] : [Number(value & 127n) | 128, ...varint(value >> 7n, bytes - 1)];
/** A field that no version of the definitions has, of any kind; numbers may be longer than they need. */
const unknown: fc.Arbitrary<readonly number[]> = fc
  .tuple(fc.integer({ min: 100, max: 2 ** 29 - 1 }), fc.constantFrom(0, 1, 2, 5), fc.bigInt(0n, 2n ** 64n - 1n))
  .chain(([number, wire, value]) => {
    const tag = varint((BigInt(number) << 3n) | BigInt(wire));
    if (wire === 0) return fc.constant([...tag, ...varint(value)]);
    if (wire !== 2) return fc.constant([...tag, ...Array.from({ length: wire === 1 ? 8 : 4 }, () => 255)]);
    return fc
      .tuple(fc.uint8Array({ maxLength: 20 }), fc.integer({ min: 1, max: 9 }))
      .map(([inner, longer]) => [...tag, ...varint(BigInt(inner.length), longer), ...inner]);
  });

test("fields that nobody knows, of any kind and in any place, change nothing that is read", () => {
  const property = fc.property(
    fc.array(unknown, { maxLength: 8 }),
    fc.array(unknown, { maxLength: 8 }),
    bytes,
    (outer, inner, body) => {
      const inBody = Buffer.concat([
        ...inner.map((one) => Buffer.from(one)),
        Buffer.from([10, ...varint(BigInt(body.length), 4)]),
        body,
        Buffer.from([16, 1]),
      ]);
      const phase = Buffer.concat([Buffer.from([34, ...varint(BigInt(inBody.length), 5)]), inBody]);
      const half = outer.length >> 1;
      const whole = Buffer.concat([
        Buffer.from(outer.slice(0, half).flat()),
        phase,
        Buffer.from(outer.slice(half).flat()),
      ]);
      assert.deepEqual(readProcessingRequest(whole).requestBody, { body, ends: true });
    },
  );
  fc.assert(property);
});

for (const [what, given] of [
  ["a number of more than ten bytes", [120, ...Array.from({ length: 10 }, () => 255), 1]],
  ["a length beyond the message", [34, 255, 255, 255, 255, 15]],
  ["a length beyond the message that it is in, within the outer one", [34, 2, 10, 3, 1, 1, 1]],
  ["a negative length", [34, ...Array.from({ length: 9 }, () => 255), 1]],
  ["a group", [123, 124]],
  ["the end of a group", [124]],
  ["kinds that are not in use", [126]],
  ["a field of number 0", [2, 0]],
  ["a number of a field above those there may be", [128, 128, 128, 128, 128, 1, 0]],
  ["two phases", [34, 0, 18, 0]],
  ["more fields than a message may have", Array.from({ length: 65_537 }, () => [120, 1]).flat()],
  [
    "more fields in its metadata than a message may have",
    [66, ...varint(131_074n), ...Array.from({ length: 65_537 }, () => [120, 1]).flat()],
  ],
] as const) {
  test(`refused: ${what}`, () => {
    assert.throws(() => readProcessingRequest(Buffer.from(given)), BadMessage);
  });
}

test("numbers above 32 bits, and texts that are no UTF-8, are read without harm", () => {
  const modes = [90, 11, 8, ...varint(2n ** 64n - 1n)];
  assert.ok(readProcessingRequest(Buffer.from(modes)).modes!.request > 2 ** 63);
  const header = [18, 8, 10, 6, 10, 4, 10, 2, 0xff, 0xfe];
  assert.deepEqual(readProcessingRequest(Buffer.from(header)).requestHeaders!.flat, ["\ufffd\ufffd", ""]);
});

const changes: fc.Arbitrary<HeaderChanges> = fc.record({
  set: fc.array(fc.tuple(name, latin1), { maxLength: 8 }),
  removed: fc.array(name, { maxLength: 4 }),
});
const reply: fc.Arbitrary<Reply> = fc.oneof(
  fc.record({
    kind: fc.constantFrom(REPLY.requestHeaders, REPLY.responseHeaders, REPLY.requestBody, REPLY.responseBody),
    headers: fc.option(changes, { nil: undefined }),
    body: fc.option(bytes, { nil: undefined }),
    ends: flag,
    destination: text,
  }),
  fc.record({ kind: fc.constantFrom(REPLY.requestTrailers, REPLY.responseTrailers) }),
  fc.record({
    kind: fc.constant(REPLY.immediate),
    status: fc.integer({ min: 200, max: 599 }),
    headers: changes,
    body: bytes,
    details: text,
  }),
);
const FIELDS = Object.fromEntries(Object.entries(REPLY).map(([field, kind]) => [kind, field]));

test("what the picker answers is read by the gRPC library as it was meant, in any number and wherever it is cut", () => {
  const property = fc.property(
    fc.array(reply, { minLength: 1, maxLength: 5 }),
    fc.integer({ min: 1, max: 9_000 }),
    (given, cut) => {
      const framed = framedResponses(given);
      const frames = new MessageFrames(framed.length);
      const read: ProcessingResponse[] = [];
      for (let at = 0; at < framed.length; at += cut)
        frames.push(framed.subarray(at, at + cut), (one) =>
          read.push(responseDeserialize(Buffer.from(one)) as ProcessingResponse),
        );
      assert.ok(frames.isBetween);
      assert.equal(read.length, given.length);
      given.forEach((one, i) => assertMeant(read[i]!, one));
    },
  );
  fc.assert(property);
});

function assertMeant(read: ProcessingResponse, meant: Reply): void {
  if (meant.kind === REPLY.immediate) {
    const { status, headers, body, details } = read.immediateResponse!;
    assert.equal(status.code, meant.status);
    assert.deepEqual(body, meant.body);
    assert.equal(details, meant.details);
    assertHeaders(headers, meant.headers);
    return;
  }
  const found = read[FIELDS[meant.kind] as keyof ProcessingResponse] as ProcessingResponse["requestHeaders"];
  assert.ok(found, "the field of its kind");
  if (!("destination" in meant)) return;
  const inner = read.dynamicMetadata?.fields?.["envoy.lb"]?.structValue?.fields;
  assert.equal(inner?.["x-gateway-destination-endpoint"]?.stringValue, meant.destination);
  const { headerMutation, bodyMutation, clearRouteCache } = found.response!;
  assert.equal(clearRouteCache, true);
  if (meant.headers === undefined) assert.equal(headerMutation, undefined);
  else assertHeaders(headerMutation!, meant.headers);
  if (meant.body === undefined) assert.equal(bodyMutation, undefined);
  else {
    assert.deepEqual(bodyMutation?.streamedResponse?.body ?? Buffer.alloc(0), meant.body);
    assert.equal(bodyMutation?.streamedResponse?.endOfStream ?? false, meant.ends);
  }
}

function assertHeaders(
  read: NonNullable<ProcessingResponse["immediateResponse"]>["headers"],
  meant: HeaderChanges,
): void {
  const set = read.setHeaders?.map(({ header, appendAction }) => {
    assert.equal(appendAction, 2, "overwrites, or adds");
    return [header.key, header.rawValue?.toString("latin1") ?? ""];
  });
  assert.deepEqual(set ?? [], meant.set);
  assert.deepEqual(read.removeHeaders ?? [], meant.removed ?? []);
}

test("headers that no proxy has are refused by their size, and bodies of that size are read", () => {
  const long = "x".repeat(1_100_000);
  const headers = proxiedHeaders(PHASE.requestHeaders, { a: long }).subarray(5);
  assert.throws(() => readProcessingRequest(headers), BadMessage);
  const body = proxiedBody(PHASE.requestBody, Buffer.from(long)).subarray(5);
  assert.equal(readProcessingRequest(body).requestBody?.body.toString(), long);
});
