import assert from "node:assert/strict";
import { renameSync, writeFileSync } from "node:fs";
import { createServer, request } from "node:https";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import { connect as tlsConnect, type ConnectionOptions, type SecureVersion, type TLSSocket } from "node:tls";

import { Agent } from "undici";

import { ConfigError } from "#config/config-error.ts";
import { CONFIG_SCHEMA } from "#config/schema.ts";
import { askEngine } from "#live/endpoints/engine-request.ts";
import type { FaultEvent } from "#live/log/fault-log.ts";
import { EngineConnections } from "#live/tls/connections.ts";
import { liveTls } from "#serve/clients/live-tls.ts";
import { CHAT, type Rig, type RigOptions, ask, errorOf, startRig } from "../gateway/rig.ts";
import {
  type Reply,
  STREAM_END,
  STREAM_HEAD,
  chatAnswer,
  event,
  jsonReply,
  roleChunk,
  tokenChunk,
} from "../gateway/stub-engine.ts";
import { Certificates, type Pair } from "./made-certificates.ts";

const ok: Reply = (_r, s) => void s.write(jsonReply(200, chatAnswer("ok")));

interface Sections {
  readonly tls?: object;
  readonly engineTls?: object;
}

function configured(t: TestContext, { tls, engineTls = {} }: Sections) {
  const events: FaultEvent[] = [];
  const watched = { watchMillis: 20 };
  const config = CONFIG_SCHEMA.parse({
    listen: tls === undefined ? {} : { tls: { ...watched, ...tls } },
    engineTls: { ...watched, ...engineTls },
  });
  const certificates = new Map<string, number>();
  const live = liveTls(config, { report: (happened) => void events.push(happened), certificates });
  t.after(() => live.stop());
  return { live, events, certificates };
}

async function started(t: TestContext, sections: Sections, replies: readonly Reply[] = [ok], more: RigOptions = {}) {
  const { live, events, certificates } = configured(t, sections);
  const rig = await startRig(replies, { listenTls: live.listenTls, connections: live.connections, ...more });
  t.after(() => rig.close());
  return { rig, events, live, certificates };
}

/** A chat over TLS on a connection of its own; the server's name as its certificate has it. */
function securely(rig: Rig, options: ConnectionOptions, body: object = CHAT) {
  return new Promise<{ status: number; body: string; name: string; protocol: string }>((resolve, reject) => {
    const { port } = new URL(rig.url);
    const headers = { "content-type": "application/json" };
    const how = {
      host: "127.0.0.1",
      port,
      path: "/v1/chat/completions",
      method: "POST",
      headers,
      agent: false as const,
    };
    const sent = request({ ...how, ...options }, (response) => {
      const socket = response.socket as TLSSocket;
      const name = String(socket.getPeerCertificate().subject.CN);
      const protocol = socket.getProtocol() ?? "";
      let text = "";
      response.setEncoding("utf8").on("data", (part: string) => (text += part));
      response.on("end", () => resolve({ status: response.statusCode!, body: text, name, protocol }));
    });
    sent.on("error", reject);
    sent.end(JSON.stringify(body));
  });
}

async function until(what: string, holds: () => boolean): Promise<void> {
  const deadline = performance.now() + 60_000;
  while (!holds()) {
    if (performance.now() > deadline) throw new Error(`never happened: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

/** An engine that speaks TLS. */
async function secureEngine(t: TestContext, own: Pair, clientRoot?: Pair): Promise<string> {
  const wants = clientRoot === undefined ? {} : { ca: clientRoot.cert, requestCert: true, rejectUnauthorized: true };
  const server = createServer({ cert: own.cert, key: own.key, ...wants }, (incoming, response) => {
    incoming.resume();
    response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(chatAnswer("secret")));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return `https://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

test("a gateway that leaves announces the end of a TLS connection too", async (t) => {
  const made = new Certificates(t);
  const { certFile, keyFile } = made.signed(made.root("root"), "gateway");
  const { rig } = await started(t, { tls: { certFile, keyFile } });
  const client = tlsConnect({ host: "127.0.0.1", port: Number(new URL(rig.url).port), rejectUnauthorized: false });
  let text = "";
  client.setEncoding("utf8").on("data", (piece: string) => (text += piece));
  const page = "GET /v1/models HTTP/1.1\r\nhost: x\r\n\r\n";
  client.write(page);
  await until("the first answer", () => text.includes('"tiny"'));
  assert.doesNotMatch(text, /connection: close/i);
  const closed = rig.gateway.close(60_000);
  text = "";
  client.write(page);
  await until("the second", () => text.includes('"tiny"'));
  assert.match(text, /connection: close/i);
  client.destroy();
  await closed;
});

test("clients speak TLS to the gateway, not below the version that is stated, and plain HTTP gets nothing", async (t) => {
  const made = new Certificates(t);
  const root = made.root("root");
  const { certFile, keyFile } = made.signed(root, "gateway");
  const { rig } = await started(t, { tls: { certFile, keyFile, minVersion: "TLSv1.3" } });
  assert.match(rig.url, /^https:/);
  const got = await securely(rig, { ca: root.cert });
  assert.deepEqual([got.status, got.name, got.protocol], [200, "gateway", "TLSv1.3"]);
  const old: SecureVersion = "TLSv1.2";
  await assert.rejects(securely(rig, { ca: root.cert, maxVersion: old }), /alert protocol version/i);
  await assert.rejects(ask(rig.url.replace("https", "http"), CHAT));
  await until("both counted", () => rig.gateway.counters.handshakesFailed === 2);
  assert.equal((await securely(rig, { ca: root.cert })).status, 200);
});

test("a new certificate holds from the next connection on, and a stream under way goes on", async (t) => {
  const made = new Certificates(t);
  const root = made.root("root");
  const first = made.signed(root, "first");
  const second = made.signed(root, "second", { days: 9 });
  let finish = (): void => {};
  const reply: Reply = (wanted, s) => {
    if (wanted.index > 0) return void s.write(jsonReply(200, chatAnswer("ok")));
    s.write(STREAM_HEAD + roleChunk() + tokenChunk("one"));
    finish = () => void s.write(tokenChunk(" two") + event("[DONE]") + STREAM_END);
  };
  const { certFile, keyFile } = first;
  const { rig, events, certificates } = await started(t, { tls: { certFile, keyFile } }, [reply]);
  const daysLeft = () => Math.round((certificates.get("listen.tls")! - Date.now() / 1e3) / 86_400);
  assert.deepEqual([[...certificates.keys()], daysLeft()], [["listen.tls"], 2]);
  const stream = securely(rig, { ca: root.cert }, { ...CHAT, stream: true });
  await until("a token", () => rig.kinds().includes("first-token"));
  writeFileSync(`${first.keyFile}.new`, second.key);
  writeFileSync(`${first.certFile}.new`, second.cert);
  renameSync(`${first.keyFile}.new`, first.keyFile);
  renameSync(`${first.certFile}.new`, first.certFile);
  await until("the change", () => events.some(({ kind }) => kind === "tls-changed"));
  assert.equal((await securely(rig, { ca: root.cert })).name, "second");
  assert.equal(daysLeft(), 9);
  finish();
  assert.match((await stream).body, /one.* two.*\[DONE\]/s);
  writeFileSync(first.certFile, "no certificate");
  await until("a refusal", () => events.some(({ kind }) => kind === "tls-refused"));
  const { detail } = events.find(({ kind }) => kind === "tls-refused")!;
  assert.ok(detail.startsWith(`listen.tls.certFile: expected a PEM certificate, got ${first.certFile}`), detail);
  assert.equal((await securely(rig, { ca: root.cert })).name, "second");
});

test("a certificate whose time has not begun is refused, and taken once it begins; until then the one of before stays", async (t) => {
  const made = new Certificates(t);
  const { certFile, keyFile } = made.signed(made.root("root"), "first");
  const { rig, events } = await started(t, { tls: { certFile, keyFile } });
  // A minute is allowed between this clock and the issuer's.
  const second = made.beginning("second", new Date(Date.now() + 64_000));
  renameSync(second.keyFile, keyFile);
  renameSync(second.certFile, certFile);
  await until("a refusal", () => events.some(({ kind }) => kind === "tls-refused"));
  const { detail, done } = events.at(-1)!;
  assert.match(detail, /^listen\.tls\.certFile: expected a certificate that is valid, got one valid from .* GMT in /);
  assert.equal(done, "the certificates of before stay");
  assert.equal((await securely(rig, { rejectUnauthorized: false })).name, "first");
  await until("the change", () => events.some(({ kind }) => kind === "tls-changed"));
  assert.equal((await securely(rig, { rejectUnauthorized: false })).name, "second");
});

test("where clients must show a certificate, only those of its roots are let in", async (t) => {
  const made = new Certificates(t);
  const [root, clients, strangers] = [made.root("root"), made.root("clients"), made.root("strangers")];
  const { certFile, keyFile } = made.signed(root, "gateway");
  const { rig } = await started(t, { tls: { certFile, keyFile, clientCaFile: clients.certFile } });
  const known = made.signed(clients, "client");
  assert.equal((await securely(rig, { ca: root.cert, cert: known.cert, key: known.key })).status, 200);
  await assert.rejects(securely(rig, { ca: root.cert }));
  const unknown = made.signed(strangers, "stranger");
  await assert.rejects(securely(rig, { ca: root.cert, cert: unknown.cert, key: unknown.key }));
  await until("both counted", () => rig.gateway.counters.handshakesFailed === 2);
  assert.equal(rig.engines[0]!.requests.length, 1);
});

test("engines' certificates are held against the roots that are stated, and other roots count without a restart", async (t) => {
  const made = new Certificates(t);
  const [root, other] = [made.root("root"), made.root("other")];
  const url = await secureEngine(t, made.signed(root, "engine"));
  const caFile = join(made.folder, "ca.pem");
  writeFileSync(caFile, other.cert);
  const { rig, events } = await started(t, { engineTls: { caFile } }, [], { urls: [url] });
  const refused = await ask(rig.url, CHAT);
  assert.equal(refused.status, 502);
  assert.doesNotMatch(refused.body, /secret/);
  writeFileSync(caFile, other.cert + root.cert);
  await until("the change", () => events.some(({ kind }) => kind === "tls-changed"));
  assert.match((await ask(rig.url, CHAT)).body, /secret/);
  await rig.close();
  const blind = await started(t, { engineTls: { verify: false } }, [], { urls: [url] });
  assert.equal((await ask(blind.rig.url, CHAT)).status, 200);
});

test("an engine that waits for its certificate to be trusted is named as that, not as a broken connection", async (t) => {
  const made = new Certificates(t);
  const url = await secureEngine(t, made.signed(made.root("root"), "engine"));
  const dispatcher = new Agent({ connect: new EngineConnections({ ca: made.root("other").cert }).connector(5000) });
  t.after(() => dispatcher.close());
  const stop = new AbortController().signal;
  const asked = { dispatcher, apiKey: undefined, timeoutMillis: 5000, bytesMax: 1024, stop };
  const answer = await askEngine(`${url}/v1/models`, asked);
  assert.equal(answer.kind, "failed");
  assert.match(JSON.stringify(answer), /"cut".*certificate.*engineTls\.caFile.*\([A-Z_]*(CERT|VERIFY)[A-Z_]*\)/);
});

test("an engine gets the certificate that it asks for, and one that is known by a name is held against that", async (t) => {
  const made = new Certificates(t);
  const [root, clients] = [made.root("root"), made.root("clients")];
  const url = await secureEngine(t, made.signed(root, "engine", { names: ["vllm.infer"] }), clients);
  const own = made.signed(clients, "gateway");
  const pair = { certFile: own.certFile, keyFile: own.keyFile };
  const engineTls = { caFile: root.certFile, ...pair };
  for (const [serverName, status] of [
    ["vllm.infer", 200],
    ["somebody.else", 502],
  ] as const) {
    const { rig } = await started(t, { engineTls }, [], { urls: [url], entry: { serverName } });
    assert.equal((await ask(rig.url, CHAT)).status, status, serverName);
  }
  const without = await started(t, { engineTls: { caFile: root.certFile } }, [], { urls: [url] });
  assert.equal(errorOf(await ask(without.rig.url, CHAT)).code, 502);
});

test("files that are missing, hold something else, do not belong together, are over or have not begun are refused with their names", (t) => {
  const made = new Certificates(t);
  const root = made.root("root");
  const [one, two] = [made.signed(root, "one"), made.signed(root, "two")];
  const over = made.signed(root, "over", { days: -1 });
  const later = made.beginning("later", new Date(Date.now() + 3 * 86_400_000));
  const empty = join(made.folder, "empty.pem");
  writeFileSync(empty, "");
  const wrong: [Sections, RegExp][] = [
    [
      { tls: { certFile: "/nowhere/a.pem", keyFile: one.keyFile } },
      /^listen\.tls\.certFile: expected a readable file, got \/nowhere\/a\.pem: no such file$/,
    ],
    [
      { tls: { certFile: empty, keyFile: one.keyFile } },
      /^listen\.tls\.certFile: expected a PEM certificate, got .*empty\.pem/,
    ],
    [
      { tls: { certFile: one.certFile, keyFile: one.certFile } },
      /^listen\.tls\.keyFile: expected a PEM private key without a passphrase, got .*one1\.pem/,
    ],
    [
      { tls: { certFile: one.certFile, keyFile: two.keyFile } },
      /^listen\.tls\.keyFile: expected the key of .*one1\.pem, got another one in .*two1\.key$/,
    ],
    [
      { tls: { certFile: over.certFile, keyFile: over.keyFile } },
      /^listen\.tls\.certFile: expected a certificate that is valid, got one over for \d+ days in .*over1\.pem$/,
    ],
    [
      { tls: { certFile: later.certFile, keyFile: later.keyFile } },
      /^listen\.tls\.certFile: expected a certificate that is valid, got one valid from \w+ +\d+ .* GMT in .*later1\.pem$/,
    ],
    [
      { tls: { certFile: one.certFile, keyFile: one.keyFile, clientCaFile: empty } },
      /^listen\.tls\.clientCaFile: expected PEM certificates, got none in .*empty\.pem$/,
    ],
    [{ engineTls: { caFile: empty } }, /^engineTls\.caFile: expected PEM certificates/],
  ];
  for (const [sections, expected] of wrong) {
    assert.throws(
      () => configured(t, sections),
      (error) => {
        assert.ok(error instanceof ConfigError);
        assert.match(error.lines[0]!, expected);
        assert.doesNotMatch(error.lines.join(), /BEGIN/);
        return true;
      },
    );
  }
});
