import assert from "node:assert/strict";
import { test } from "node:test";
import { endAll } from "../../bench/children.ts";
import { rollingGatewaysPart } from "../../bench/faults/rolling-gateways.ts";

/** The short part of `npm run faults -- --part rolling-gateways`. */
test("every gateway is replaced behind a TCP balancer, and no request of clients that keep their connections is lost", async (t) => {
  t.after(endAll);
  const rows = await rollingGatewaysPart(3, { requests: 160, clients: 24, lasting: 8 });
  for (const { what, figure, holds } of rows) assert.ok(holds, `${what}: ${figure}`);
});
