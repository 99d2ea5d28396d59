import assert from "node:assert/strict";
import { once } from "node:events";
import { connect, type IncomingHttpHeaders } from "node:http2";
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

test("all services are listed with what each is", async (t) => {
  const proxy = await ProxyRig.start(t, {}, { ready: () => false });
  const client = new Client(`127.0.0.1:${proxy.picker.port}`, credentials.createInsecure());
  t.after(() => client.close());
  const list = client["List"]!.bind(client) as (
    question: object,
    answer: (error: ServiceError | null, value?: { statuses: Record<string, { status: number }> }) => void,
  ) => void;
  const { promise, resolve, reject } = Promise.withResolvers<Record<string, { status: number }> | undefined>();
  list({}, (error, value) => (error === null ? resolve(value?.statuses) : reject(error)));
  const statuses = Object.entries((await promise) ?? {}).map(([name, { status }]) => [name, status]);
  assert.deepEqual(Object.fromEntries(statuses), {
    "": 2,
    liveness: 1,
    readiness: 2,
    [EXTERNAL_PROCESSOR]: 2,
    "inference-extension": 2,
  });
});

test("a check without a question is refused, and a watch ends as the picker does, with a status", async (t) => {
  const proxy = await ProxyRig.start(t);
  const session = connect(`http://127.0.0.1:${proxy.picker.port}`);
  t.after(() => session.destroy());
  const call = (method: string) =>
    session.request({ ":method": "POST", ":path": `/${HEALTH}/${method}`, "content-type": "application/grpc" });
  const check = call("Check");
  check.end();
  const [head] = (await once(check, "response")) as [IncomingHttpHeaders];
  assert.equal(head["grpc-status"], "13");
  const watch = call("Watch");
  watch.end(Buffer.alloc(5));
  const [first] = (await once(watch, "data")) as [Buffer];
  assert.deepEqual([...first], [0, 0, 0, 0, 2, 8, 1]);
  const trailers = once(watch, "trailers") as Promise<[IncomingHttpHeaders]>;
  watch.resume();
  await proxy.picker.stop(60_000);
  assert.equal((await trailers)[0]["grpc-status"], "14");
});
