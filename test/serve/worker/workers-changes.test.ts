import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { request } from "node:https";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import type { TLSSocket } from "node:tls";
import { pino } from "pino";
import { stringify } from "yaml";
import { replayCommand } from "#cli/replay.ts";
import { servePlan } from "#cli/serve/serve-options.ts";
import { createLiveStack } from "#serve/live-stack.ts";
import { inProcess } from "../../cli/in-process.ts";
import { until } from "../../live/discovery/fleet-under-test.ts";
import { Certificates, type Pair } from "../../live/tls/made-certificates.ts";
import { CompletionEngine, target } from "./completion-engine.ts";

/** Connections that are spread over the workers: all at one of two is a chance of 1 in 32,768. */
const CONNECTIONS = 16;
const ADMIN = "the admin's token, which is long";
const KEYS = { old: "gk-the-key-of-the-old-client", new: "gk-the-key-of-the-new-client" } as const;

interface Asked {
  readonly method?: string;
  readonly path?: string;
  readonly token?: string;
  readonly body?: object;
}

interface Got {
  readonly status: number;
  readonly text: string;
  readonly headers: Readonly<Record<string, unknown>>;
  /** Name in the gateway's certificate. */
  readonly name: string;
}

function replaced(file: string, text: string): void {
  writeFileSync(`${file}.new`, text);
  renameSync(`${file}.new`, file);
}

function keysText(...keys: readonly string[]): string {
  return stringify({
    keys: keys.map((key, i) => ({ name: `key-${i}`, sha256: createHash("sha256").update(key).digest("hex") })),
  });
}

/** A client with a certificate of its own, each of whose requests has a connection of its own. */
function client(root: Pair, own: Pair, url: string) {
  const { port } = new URL(url);
  const one = ({ method = "POST", path = "/v1/completions", token = KEYS.old, body }: Asked = {}) =>
    new Promise<Got>((resolve, reject) => {
      const headers = { "content-type": "application/json", authorization: `Bearer ${token}` };
      const how = { host: "127.0.0.1", port, method, path, headers, agent: false as const };
      const sent = request({ ...how, ca: root.cert, cert: own.cert, key: own.key }, (response) => {
        const name = String((response.socket as TLSSocket).getPeerCertificate().subject.CN);
        let text = "";
        response.setEncoding("utf8").on("data", (part: string) => (text += part));
        response.on("end", () => resolve({ status: response.statusCode!, text, headers: response.headers, name }));
      });
      sent.on("error", reject);
      if (method === "GET") sent.end();
      else sent.end(JSON.stringify(body ?? { model: "tiny", prompt: "a question", max_tokens: 8 }));
    });
  const all = (asked: Asked = {}) => Promise.all(Array.from({ length: CONNECTIONS }, () => one(asked)));
  /** Once every worker has followed, all answers are alike. */
  const allUntil = async (what: string, holds: (got: Got) => boolean, asked: Asked = {}): Promise<void> => {
    const deadline = performance.now() + 60_000;
    for (;;) {
      const got = await all(asked);
      if (got.every(holds)) return;
      if (performance.now() > deadline) throw new Error(`never at all workers: ${what}: ${JSON.stringify(got[0])}`);
    }
  };
  const admin = async (method: string, path: string, body?: object): Promise<Got> => {
    const got = await one({ method, path, token: ADMIN, ...(body && { body }) });
    assert.equal(got.status, 200, got.text);
    return got;
  };
  return { one, all, allUntil, admin };
}

test("what one worker is asked holds for all: certificates, clients' roots and keys that change, policy, cordon, drain", async (t) => {
  const folder = mkdtempSync(join(tmpdir(), "gnomon-workers-changes-"));
  t.after(() => rmSync(folder, { recursive: true }));
  const made = new Certificates(t);
  const [root, clients, otherClients] = [made.root("root"), made.root("clients"), made.root("others")];
  const [first, second] = [made.signed(root, "first"), made.signed(root, "second")];
  const [known, unknown] = [made.signed(clients, "known"), made.signed(otherClients, "unknown")];
  const keysFile = join(folder, "keys.yaml");
  writeFileSync(keysFile, keysText(KEYS.old));
  const engines = [await CompletionEngine.start(), await CompletionEngine.start()] as const;
  const set = [
    "listen.workers=2",
    "listen.drainNoticeMillis=0",
    "listen.warmUpMillis=0",
    `listen.tls.certFile=${first.certFile}`,
    `listen.tls.keyFile=${first.keyFile}`,
    `listen.tls.clientCaFile=${clients.certFile}`,
    "listen.tls.watchMillis=20",
    `clients.keysFile=${keysFile}`,
    "clients.keysWatchMillis=20",
    "admin.tokenEnv=ADMIN",
    `record.directory=${join(folder, "trace")}`,
  ];
  const stack = await createLiveStack(servePlan({ set }, { ADMIN }), { ADMIN }, pino({ level: "silent" }));
  t.after(() => stack.close());
  const { url } = await stack.gateway.listen("127.0.0.1", 0);
  assert.match(url, /^https:/);
  stack.keeper.setTargets("static", [target("a", engines[0].url), target("b", engines[1].url)]);
  await until("the endpoints are there", () => stack.tap.router.endpointRows(0).length === 2);
  const { one, all, allUntil, admin } = client(root, known, url);

  assert.ok((await all()).every(({ status, name }) => status === 200 && name === "first"));
  await assert.rejects(client(root, unknown, url).one());
  replaced(first.keyFile, second.key);
  replaced(first.certFile, second.cert);
  await allUntil("the new certificate", ({ status, name }) => status === 200 && name === "second");
  replaced(clients.certFile, clients.cert + otherClients.cert);
  const stranger = client(root, unknown, url);
  for (let count = 0; count < CONNECTIONS;) {
    count = await stranger.one().then(
      () => count + 1,
      () => 0,
    );
  }

  assert.ok((await all({ token: KEYS.new })).every(({ status }) => status === 401));
  replaced(keysFile, keysText(KEYS.old, KEYS.new));
  await allUntil("the new key", ({ status }) => status === 200, { token: KEYS.new });
  replaced(keysFile, keysText(KEYS.new));
  await allUntil("the old key is gone", ({ status }) => status === 401);

  const token = KEYS.new;
  await admin("POST", "/gnomon/admin/policy", { routing: { profile: "lmetric" }, limits: { bodyBytesMax: 2_000 } });
  const lmetric = ({ headers }: Got) => headers["x-gnomon-profile"] === "lmetric; version=2";
  await allUntil("the profile", lmetric, { token });
  const long = { model: "tiny", prompt: "x".repeat(3_000) };
  assert.ok((await all({ token, body: long })).every(({ status }) => status === 413));
  await admin("POST", "/gnomon/admin/policy/rollback", { version: 1 });
  await allUntil("the policy of before", ({ status }) => status === 200, { token, body: long });

  await admin("POST", "/gnomon/admin/endpoints/a/cordon", {});
  assert.ok((await all({ token })).every(({ headers }) => headers["x-gnomon-endpoint"] === "b"));
  await admin("POST", "/gnomon/admin/endpoints/a/uncordon", {});
  await admin("POST", "/gnomon/admin/endpoints/b/cordon", {});
  engines[0].holds = true;
  const held = all({ token });
  await until("they wait at one endpoint", () => engines[0].held.length === CONNECTIONS);
  await admin("POST", "/gnomon/admin/endpoints/b/uncordon", {});
  const drained = await admin("POST", "/gnomon/admin/endpoints/a/drain", { graceMillis: 0 });
  assert.match(drained.text, /"drain":"drain(ing|ed)"/);
  const moved = await held;
  assert.ok(moved.every(({ status, headers }) => status === 200 && headers["x-gnomon-endpoint"] === "b"));

  const page = (await one({ method: "GET", path: "/metrics", token })).text;
  assert.match(page, /^gnomon_worker_up\{worker="2"\} 1$/m);
  assert.match(page, /^gnomon_tenant_requests_total\{tenant="key-0",outcome="ok"\} \d+$/m);
  assert.match(page, new RegExp(`^gnomon_requests_moved_total\\{from="[^"]+"\\} ${CONNECTIONS}$`, "m"));
  await until("nothing is in flight", () => stack.tap.router.inFlight === 0);
  assert.equal(stack.tap.router.strayInputs, 0);
  await stack.close();
  for (const { stub } of engines) await stub.kill();
  const { code, out } = await inProcess(t, [replayCommand()], ["replay", join(folder, "trace")]);
  assert.equal(code, 0, out);
  assert.match(out, /identical/);
});
