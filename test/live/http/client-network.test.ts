import assert from "node:assert/strict";
import { test } from "node:test";

import { clientNetwork } from "#live/http/client-network.ts";

test("an IPv4 address is a client's own, of an IPv6 address its first 64 bits", () => {
  assert.equal(clientNetwork("10.0.0.5"), "10.0.0.5");
  assert.equal(clientNetwork("::ffff:10.0.0.5"), "10.0.0.5");
  assert.equal(clientNetwork("2001:db8:1:2:3:4:5:6"), "2001:db8:1:2::/64");
  assert.equal(clientNetwork("2001:db8:1:2::9"), clientNetwork("2001:db8:1:2:ffff::1"));
  assert.equal(clientNetwork("2001:db8::9"), "2001:db8:0:0::/64");
  assert.equal(clientNetwork("::1"), "0:0:0:0::/64");
  assert.notEqual(clientNetwork("2001:db8:1:2::1"), clientNetwork("2001:db8:1:3::1"));
  assert.equal(clientNetwork(undefined), "");
});
