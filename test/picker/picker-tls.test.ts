import assert from "node:assert/strict";
import { X509Certificate } from "node:crypto";
import { once } from "node:events";
import { renameSync, writeFileSync } from "node:fs";
import { connect as connectHttp2 } from "node:http2";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import { connect } from "node:tls";
import { stringify } from "yaml";
import { selfSigned } from "#picker/self-signed.ts";
import { takenPort } from "../cli/command-line.ts";
import { answeringEngine } from "../cli/serve/answering-engine.ts";
import { gatewayHere } from "../cli/serve/gateway-here.ts";
import { Certificates } from "../live/tls/made-certificates.ts";

/** The certificate that a server shows, to a client that does not ask who it is. */
async function shown(port: number): Promise<X509Certificate> {
  const socket = connect({ host: "127.0.0.1", port, rejectUnauthorized: false, ALPNProtocols: ["h2"] });
  await once(socket, "secureConnect", { signal: AbortSignal.timeout(5_000) }).finally(() =>
    setImmediate(() => socket.destroy()),
  );
  const certificate = socket.getPeerX509Certificate()!;
  socket.destroy();
  return certificate;
}

async function freePort(): Promise<number> {
  const { server, port } = await takenPort();
  server.close();
  await once(server, "close");
  return port;
}

async function pickerOf(t: TestContext, folder: string, picker: object): Promise<number> {
  const file = join(folder, "config.yaml");
  const { url } = await answeringEngine(t);
  writeFileSync(file, stringify({ listen: { port: 0 }, picker, endpoints: [{ url }] }));
  await gatewayHere(t, ["--config", file]);
  return (picker as { port: number }).port;
}

test("a certificate that it signed itself is one: version, names, times and key", () => {
  const now = new Date("2026-03-04T05:06:07.890Z");
  for (let n = 0; n < 20; n++) {
    const { cert, key } = selfSigned("gnomon", now);
    const certificate = new X509Certificate(cert);
    assert.equal(certificate.subject, "CN=gnomon");
    assert.equal(certificate.issuer, "CN=gnomon");
    assert.equal(certificate.subjectAltName, "DNS:gnomon");
    assert.deepEqual(
      [certificate.validFromDate, certificate.validToDate],
      [new Date("2026-03-03T05:06:07Z"), new Date("2036-03-03T05:06:07Z")],
    );
    assert.ok(certificate.verify(certificate.publicKey), "its signature is of its own key");
    assert.equal(certificate.serialNumber.length, 32);
    assert.match(key, /PRIVATE KEY/);
  }
});

test("without files the port is TLS with a certificate of its own; plain text is refused, or asked for", async (t) => {
  const { folder } = new Certificates(t);
  const port = await pickerOf(t, folder, { port: await freePort() });
  assert.equal((await shown(port)).subject, "CN=gnomon");
  const plain = connectHttp2(`http://127.0.0.1:${port}`);
  await assert.rejects(once(plain, "remoteSettings", { signal: AbortSignal.timeout(5_000) }));
  plain.destroy();
  const open = await pickerOf(t, folder, { port: await freePort(), plaintext: true });
  const session = connectHttp2(`http://127.0.0.1:${open}`);
  await once(session, "remoteSettings");
  session.destroy();
  await assert.rejects(shown(open));
});

test("a certificate that is mounted is shown, and a new one in its place from the next connection on", async (t) => {
  const made = new Certificates(t);
  const root = made.root("root");
  const [first, second] = [made.signed(root, "first"), made.signed(root, "second")];
  const [certFile, keyFile] = ["tls.crt", "tls.key"].map((name) => join(made.folder, name)) as [string, string];
  const mount = ({ cert, key }: typeof first): void => {
    for (const [file, text] of [
      [certFile, cert],
      [keyFile, key],
    ] as const) {
      writeFileSync(`${file}.new`, text);
      renameSync(`${file}.new`, file);
    }
  };
  mount(first);
  const port = await pickerOf(t, made.folder, { port: await freePort(), certFile, keyFile });
  assert.equal((await shown(port)).subject, "CN=first");
  mount(second);
  const until = performance.now() + 20_000;
  while ((await shown(port)).subject !== "CN=second" && performance.now() < until) {
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  assert.equal((await shown(port)).subject, "CN=second");
});
