import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import { credentials, makeGenericClientConstructor, type ServiceError } from "@grpc/grpc-js";
import { EXTERNAL_PROCESSOR, HEALTH, serviceOf } from "./protocol.ts";
import { ProxyRig } from "./proxy.ts";

const Client = makeGenericClientConstructor(serviceOf("health.proto", HEALTH), "health");

function checker(t: TestContext, port: number): (service: string) => Promise<number | undefined> {
  const client = new Client(`127.0.0.1:${port}`, credentials.createInsecure());
  t.after(() => client.close());
  const check = client["Check"]!.bind(client) as (
    question: object,
    answer: (error: ServiceError | null, value?: { status: number }) => void,
  ) => void;
  return (service) =>
    new Promise((resolve, reject) => {
      check({ service }, (error, value) => (error === null ? resolve(value?.status) : reject(error)));
    });
}

test("liveness answers always; readiness, the processor and the server as a whole while an endpoint is ready", async (t) => {
  let ready = false;
  const proxy = await ProxyRig.start(t, {}, { ready: () => ready, healthPort: 0 });
  for (const port of [proxy.picker.port, proxy.picker.healthPort!]) {
    const check = checker(t, port);
    for (const now of [false, true]) {
      ready = now;
      assert.equal(await check("liveness"), 1);
      for (const service of ["readiness", EXTERNAL_PROCESSOR, ""]) assert.equal(await check(service), now ? 1 : 2);
    }
    await assert.rejects(check("other"), { code: 5 });
  }
});
