import assert from "node:assert/strict";
import { request } from "node:http";
import { type TestContext, describe, test } from "node:test";
import { startedGateway } from "../../serve/started-gateway.ts";
import { Routes } from "#live/http/route.ts";
import { servePlan } from "../../../src/cli/serve/serve-options.ts";

const TOKEN = "an-admin-token-of-this-test";
/** Of the port for clients as well, for scrapers, probes and load balancers. */
const ON_BOTH = ["/metrics", "/healthz", "/readyz", "/health", "/ping", "/version"];

async function started(t: TestContext, environment: Record<string, string> = {}) {
  const set = ['routes.administration=["/sleep","/v1/load_lora_adapter"]', "listen.warmUpMillis=0"];
  const plan = servePlan({ set, endpoint: ["http://127.0.0.1:9"] }, environment);
  const stack = await startedGateway(plan, environment);
  t.after(() => stack.close());
  const { gateway } = stack;
  const [{ url }, { url: adminUrl }] = [
    await gateway.listen("127.0.0.1", 0),
    await gateway.listenAdmin("127.0.0.1", 0),
  ];
  const paths = gateway.admin.routes.filter(({ path, method }) => path !== "/*" && method !== "ALL");
  return {
    gateway,
    url,
    adminUrl,
    routes: paths.map(({ method, path }) => ({ method, path: path.replaceAll(/:id\{.*?\}/g, "1").replace("*", "x") })),
  };
}

/** What a server answers to a request as a proxy on the same machine passes it on with its defaults: of nobody but itself. */
function passedOn(url: string, method: string, path: string, headers: Record<string, string> = {}) {
  return new Promise<{ status: number; text: string }>((resolve, reject) => {
    const { host } = new URL(url);
    const sent = request(`${url}${path}`, { method, headers: { host, connection: "close", ...headers } }, (answer) => {
      let text = "";
      answer.setEncoding("utf8").on("data", (part: string) => (text += part));
      answer.on("end", () => resolve({ status: answer.statusCode!, text }));
    });
    sent.on("error", reject).end();
  });
}

describe("two ports", () => {
  test("whatever operators are served is not there for clients, with the admin token neither", async (t) => {
    const { url, routes, gateway } = await started(t, { GNOMON_ADMIN_TOKEN: TOKEN });
    assert.ok(routes.length > 40 && routes.some(({ path }) => path === "/sleep"), String(routes.length));
    for (const { method, path } of routes) {
      if (ON_BOTH.includes(path)) continue;
      for (const headers of [{}, { authorization: `Bearer ${TOKEN}` }]) {
        const { status, text } = await passedOn(url, method, path, headers);
        assert.deepEqual([status, /listen\.adminPort/.test(text)], [404, true], `${method} ${path}: ${status} ${text}`);
      }
    }
    assert.equal(gateway.counters.administrationCalls, 0);
  });

  test("for operators there is no inference, and what probes ask for is on both", async (t) => {
    const { url, adminUrl } = await started(t);
    for (const path of [...new Routes().list().split(", "), "/v1/models", "/v1/responses/resp_1"].filter((one) =>
      one.startsWith("/"),
    )) {
      const { status } = await passedOn(adminUrl, "POST", path.replace("*", "x"));
      assert.equal(status, 404, path);
    }
    for (const path of ON_BOTH) {
      const answers = await Promise.all([url, adminUrl].map((one) => passedOn(one, "GET", path)));
      assert.equal(answers[0]!.status, answers[1]!.status, path);
      assert.ok([200, 503].includes(answers[0]!.status), path);
    }
  });

  test("changes and engines' administration want the admin token, from loopback too", async (t) => {
    const open = await started(t);
    const kept = await started(t, { GNOMON_ADMIN_TOKEN: TOKEN });
    for (const [at, headers, status] of [
      [open, {}, 403],
      [open, { authorization: `Bearer ${TOKEN}` }, 403],
      [kept, {}, 401],
      [kept, { "x-api-key": "wrong" }, 401],
    ] as const) {
      for (const path of ["/sleep", "/v1/load_lora_adapter", "/gnomon/admin/policy/rollback"])
        assert.equal((await passedOn(at.adminUrl, "POST", path, headers)).status, status, path);
      assert.equal(at.gateway.counters.administrationCalls, 0);
    }
    // Let in, it meets no engine that is ready.
    assert.equal((await passedOn(kept.adminUrl, "POST", "/sleep", { authorization: `Bearer ${TOKEN}` })).status, 503);
    assert.equal((await passedOn(open.adminUrl, "GET", "/gnomon/overview")).status, 200);
    assert.equal((await passedOn(kept.adminUrl, "GET", "/gnomon/overview")).status, 401);
  });
});
