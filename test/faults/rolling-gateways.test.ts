import assert from "node:assert/strict";
import { test } from "node:test";
import { endAll } from "../../bench/children.ts";
import { metricsPage, sumOf } from "../../bench/faults/gateway-under-test.ts";
import {
  asProcess,
  type ListenSettings,
  type Replica,
  rollingGatewaysPart,
} from "../../bench/faults/rolling-gateways.ts";
import { gatewayHere } from "../cli/serve/gateway-here.ts";

/**
 * The short part of `npm run faults -- --part rolling-gateways`. The first gateway that is replaced is a process, asked to
 * end by a signal; the others run here.
 */
test("every gateway is replaced behind a TCP balancer, and no request of clients that keep their connections is lost", async (t) => {
  t.after(endAll);
  const here = async (ports: readonly number[], listen: ListenSettings): Promise<Replica> => {
    const endpoints = ports.flatMap((port) => ["--endpoint", `http://127.0.0.1:${port}`]);
    const set = Object.entries(listen).flatMap(([key, value]) => ["--set", `listen.${key}=${value}`]);
    const { url, stop } = await gatewayHere(t, [...endpoints, ...set, "--log-level", "error"]);
    const port = Number(new URL(url).port);
    return { port, metric: async (name) => sumOf(await metricsPage(port), name), stop: () => stop().then(() => 0) };
  };
  let started = 0;
  const start: typeof here = (ports, listen) => (started++ === 0 ? asProcess : here)(ports, listen);
  const rows = await rollingGatewaysPart(3, { requests: 160, clients: 24, lasting: 8 }, start);
  for (const { what, figure, holds } of rows) assert.ok(holds, `${what}: ${figure}`);
});
