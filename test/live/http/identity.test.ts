import assert from "node:assert/strict";
import { describe, test } from "node:test";
import fc from "fast-check";
import { ClientKeys, plainKeys } from "#live/http/client-auth.ts";
import { Identifier } from "#live/http/identity.ts";
import { RequestHeaders } from "#live/http/headers.ts";
import { trustedProxies } from "#live/inference/inference-door.ts";
import { CHAT, ask, startRig } from "../gateway/rig.ts";
import { chatAnswer, jsonReply } from "../gateway/stub-engine.ts";

const IDENTIFIER = new Identifier({
  tenantHeaders: ["x-gnomon-tenant", "x-team"],
  sessionHeaders: ["x-session-id"],
  inForce: { profileHeader: undefined },
  sloHeaders: ["x-class"],
  secret: "s",
});
const KEYS = ["first-key", "second-key"];

function headersOf(given: Readonly<Record<string, string>>, keys: ClientKeys, trusted = false): RequestHeaders {
  const headers = new RequestHeaders(Object.entries(given).flat());
  const client = keys.of(given["authorization"], given["x-api-key"]);
  assert.ok(client !== undefined, "it is let in");
  headers.client = client;
  headers.trusted = trusted;
  return headers;
}

const word = fc.string({ unit: fc.constantFrom("a", "b", "1", "-", "."), minLength: 1, maxLength: 8 });
/** The ways to send a key that let it in, and whatever else a client may make up. */
const sent = (key: string) =>
  fc
    .record({
      way: fc.oneof(
        fc.record({ authorization: fc.tuple(fc.constantFrom("Bearer", "bearer", "BEARER"), fc.nat(5)) }),
        fc.record({
          apiKey: fc.constant(true),
          junk: fc.option(fc.tuple(fc.constantFrom("Basic ", "Bearer ", ""), word)),
        }),
      ),
      more: fc.dictionary(
        fc.constantFrom("x-gnomon-tenant", "x-team", "x-session-id", "x-class", "x-forwarded-for"),
        word,
      ),
      user: fc.option(word),
    })
    .map(({ way, more, user }) => ({
      user,
      headers: {
        ...more,
        ...("authorization" in way
          ? { authorization: `${way.authorization[0]} ${" ".repeat(way.authorization[1])}${key}` }
          : { "x-api-key": key, ...(way.junk !== null && { authorization: way.junk.join("") }) }),
      } as Record<string, string>,
    }));

test("a client with a key is one tenant, however it sends the key and whatever else", () => {
  const keys = new ClientKeys(plainKeys(KEYS));
  const tenants = KEYS.map((key) => IDENTIFIER.identify(headersOf({ "x-api-key": key }, keys), {}).tenant);
  assert.notEqual(tenants[0], tenants[1]);
  for (const [i, key] of KEYS.entries()) {
    fc.assert(
      fc.property(sent(key), ({ headers, user }) => {
        const fields = user === null ? {} : { user };
        assert.equal(IDENTIFIER.identify(headersOf(headers, keys), fields).tenant, tenants[i]);
      }),
    );
  }
  assert.match(tenants[0]!, /^key-[0-9a-f]{16}$/);
});

test("a trusted proxy names the tenant, and without keys everybody does", () => {
  const keys = new ClientKeys(plainKeys(KEYS));
  const given = { "x-api-key": KEYS[0]!, "x-gnomon-tenant": "acme" };
  const named = IDENTIFIER.identify(headersOf(given, keys, true), {}).tenant;
  assert.match(named, /^tenant-/);
  assert.equal(IDENTIFIER.identify(new RequestHeaders(["x-gnomon-tenant", "acme"]), {}).tenant, named);
  assert.match(IDENTIFIER.identify(headersOf({ "x-api-key": KEYS[0]! }, keys, true), {}).tenant, /^key-/);
});

test("with a key that is bound to no tenant any class may be named, or those that are listed", () => {
  const given = { "x-api-key": KEYS[0]!, "x-class": "critical" };
  const classOf = (sloClasses?: readonly string[]) =>
    IDENTIFIER.identify(headersOf(given, new ClientKeys(plainKeys(KEYS, sloClasses))), {}).sloClass;
  assert.deepEqual([classOf(), classOf(["critical"]), classOf(["batch"])], ["critical", "critical", ""]);
});

test("a proxy is trusted by its address or its network, of either version", () => {
  const trusts = trustedProxies(["10.1.0.0/16", "192.0.2.7", "fd00::/8", "::1"]);
  assert.ok(trusts !== undefined);
  for (const address of ["10.1.2.3", "::ffff:10.1.2.3", "192.0.2.7", "fd12::1", "::1"])
    assert.ok(trusts(address), address);
  for (const address of ["10.2.0.1", "192.0.2.8", "fe80::1", "::2", "127.0.0.1", undefined])
    assert.ok(!trusts(address), String(address));
  assert.equal(trustedProxies([]), undefined);
});

describe("of a gateway", () => {
  for (const [proxies, tenants] of [
    [[], 1],
    [["127.0.0.0/8"], 3],
    [["10.0.0.0/8"], 1],
  ] as const) {
    test(`with trusted proxies ${proxies.join()}, names made up with one key are ${tenants} tenants`, async (t) => {
      const rig = await startRig([(_request, socket) => socket.write(jsonReply(200, chatAnswer("ok")))], {
        clientKeys: KEYS,
        trustedProxies: proxies,
      });
      t.after(() => rig.close());
      for (const tenant of ["a", "b", "c"])
        await ask(rig.url, CHAT, { headers: { "x-api-key": KEYS[0]!, "x-tenant-id": tenant } });
      const arrived = rig.inputs.flatMap((input) => (input.kind === "request-arrived" ? [input.request.tenant] : []));
      assert.deepEqual([arrived.length, new Set(arrived).size], [3, tenants]);
    });
  }
});
