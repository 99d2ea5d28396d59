/**
 * Stands in for what a container engine and a gateway's controller do in the Inference Extension's conformance tests, on a
 * real API server and before a real Envoy: pods of the echo image are echo servers, pods of a picker are gnomon, each at
 * an address of its own from 127.0.1.11 on (POD_ADDRESSES=10.78.1. has them begin so: slices of Services take no loopback); what a controller reports of classes, gateways, routes and pools is reported, and
 * Envoy's configuration follows them. So a test of a status shows nothing of gnomon; one of where requests go does.
 *
 *     KUBECONFIG=... TEST_ENVOY=... node bench/conformance/stand-ins.ts
 */
import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { createServer as createH2Server } from "node:http2";
import { type AddressInfo, connect, createServer as createSocketServer, type Server } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Agent, request } from "undici";
import { parse } from "yaml";
import { envoyFiles, type Shown } from "./envoy-files.ts";
import type { Gateway, Pod, Pool, Resource, Route, Service } from "./resources.ts";
import { gatewayStatus, poolStatus, routeStatus } from "./statuses.ts";

const ROOT = join(import.meta.dirname, "../..");
/** Pods of no node are in no slice of a Service. */
const NODE = "stand-in";
const CONTROLLER = "gnomon.test/stand-in";
const TURN_MILLIS = 300;
const FOLDER = mkdtempSync(join(tmpdir(), "gnomon-conformance-"));
const { KUBECONFIG = "", TEST_ENVOY = "", POD_ADDRESSES = "127.0.1." } = process.env;
if (KUBECONFIG === "" || TEST_ENVOY === "") throw new Error("expected KUBECONFIG and TEST_ENVOY (Envoy's binary)");

interface KubeFile {
  readonly clusters: readonly [
    { readonly cluster: { readonly server: string; readonly "certificate-authority": string } },
  ];
  readonly users: readonly [
    { readonly user: { readonly "client-certificate": string; readonly "client-key": string } },
  ];
}
const kube = parse(readFileSync(KUBECONFIG, "utf8")) as KubeFile;
const { cluster } = kube.clusters[0];
const { user } = kube.users[0];
const dispatcher = new Agent({
  connect: {
    ca: readFileSync(cluster["certificate-authority"]),
    cert: readFileSync(user["client-certificate"]),
    key: readFileSync(user["client-key"]),
  },
});

async function list<T extends Resource>(path: string): Promise<T[]> {
  const { body, statusCode } = await request(`${cluster.server}${path}`, { dispatcher });
  const answer = (await body.json()) as { readonly items?: T[] };
  if (answer.items === undefined) throw new Error(`${path}: ${statusCode} ${JSON.stringify(answer)}`);
  return answer.items;
}

async function report(path: string, status: object): Promise<void> {
  const { body, statusCode } = await request(`${cluster.server}${path}/status`, {
    dispatcher,
    method: "PATCH",
    headers: { "content-type": "application/merge-patch+json" },
    body: JSON.stringify({ status }),
  });
  const text = await body.text();
  if (statusCode >= 300 && statusCode !== 404) process.stderr.write(`${path}: ${statusCode} ${text}\n`);
}

/** Creates what may be there. */
async function post(path: string, body: object): Promise<void> {
  const headers = { "content-type": "application/json" };
  const options = { dispatcher, method: "POST", headers, body: JSON.stringify(body) } as const;
  await (await request(`${cluster.server}${path}`, options)).body.dump();
}

/** Reports what is not reported yet. */
const reported = new Map<string, string>();
async function keepReported(path: string, { metadata }: Resource, status: object): Promise<void> {
  const key = `${path} ${metadata.uid}`;
  const text = JSON.stringify(status);
  if (reported.get(key) === text) return;
  reported.set(key, text);
  await report(path, status);
}

interface Running {
  readonly ip: string;
  isReady: boolean;
  readonly end: () => void;
}
const running = new Map<string, Running>();
let addresses = 10;

/** What an engine lists, and the echo image does not: gnomon asks each engine of a pool which models it has. */
const MODELS = JSON.stringify({ object: "list", data: [{ id: "conformance-fake-model", object: "model" }] });

/** A server of HTTP/1.1, and of HTTP/2 too to who begins with its preface, as the echo image serves where it has h2c. */
function clearText(hasH2: boolean, handler: (asked: IncomingMessage, answer: ServerResponse) => void): Server {
  const first = createServer(handler);
  if (!hasH2) return first;
  first.listen(0, "127.0.0.1");
  const second = createH2Server((asked, answer) =>
    handler(asked as unknown as IncomingMessage, answer as unknown as ServerResponse),
  ).listen(0, "127.0.0.1");
  return createSocketServer((socket) =>
    socket.once("data", (begin: Buffer) => {
      const isSecond = begin.subarray(0, 3).toString("latin1") === "PRI";
      const { port } = (isSecond ? second : first).address() as AddressInfo;
      const inner = connect(port, "127.0.0.1");
      inner.write(begin);
      socket.pipe(inner).pipe(socket);
      for (const one of [socket, inner]) one.on("error", () => [socket, inner].forEach((each) => each.destroy()));
    }),
  );
}

/** What the echo image answers: who got the request, and what was in it. */
function echo({ metadata: { name, namespace }, spec }: Pod, ip: string): Running {
  const ports = spec.containers.flatMap(({ ports: own = [] }) => own.map(({ containerPort }) => containerPort));
  const variables = spec.containers.flatMap(({ env = [] }) => env);
  const h2cPort = Number(variables.find((one) => one.name === "H2C_PORT")?.value);
  const servers = ports.map((port) =>
    clearText(port === h2cPort, (asked, answer) => {
      asked.resume().on("end", () => {
        const own = Object.entries(asked.headers).filter(([key]) => !key.startsWith(":"));
        const headers = Object.fromEntries(own.map(([key, value]) => [key, [value].flat()]));
        const { url: path, method } = asked;
        const host = asked.headers.host ?? asked.headers[":authority"];
        const proto = `HTTP/${asked.httpVersion}`;
        const seen = { path, host, method, proto, headers, namespace, pod: name, httpPort: String(port) };
        const text = path === "/v1/models" ? MODELS : JSON.stringify(seen);
        answer.writeHead(200, { "content-type": "application/json" }).end(text);
      });
    }).listen(port, ip),
  );
  return { ip, isReady: true, end: () => servers.forEach((server) => server.close()) };
}

function picker({ metadata: { name, namespace } }: Pod, ip: string, pool: string): Running {
  const file = join(FOLDER, `${name}.json`);
  const config = {
    listen: { host: ip, port: 8080, adminHost: ip, warmUpMillis: 0 },
    picker: { port: 9002, healthPort: 9003, fallbacks: 2 },
    discovery: { kind: "kubernetes", namespace, pool },
    log: { level: "warn" },
  };
  writeFileSync(file, JSON.stringify(config));
  const child: ChildProcess = spawn(process.execPath, [join(ROOT, "src/main.ts"), "serve", "--config", file], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const it: Running = { ip, isReady: false, end: () => void child.kill() };
  child.stdout!.setEncoding("utf8").on("data", (text: string) => {
    process.stdout.write(text);
    if (text.includes("is ready")) it.isReady = true;
  });
  return it;
}

function started(pod: Pod): Running {
  const ip = `${POD_ADDRESSES}${++addresses}`;
  const words = pod.spec.containers.flatMap(({ args = [] }) => args);
  const at = words.indexOf("--pool-name");
  return at < 0 ? echo(pod, ip) : picker(pod, ip, words[at + 1]!);
}

async function keepPod(pod: Pod): Promise<void> {
  const { name, namespace, uid } = pod.metadata;
  const path = `/api/v1/namespaces/${namespace}/pods/${name}`;
  if (pod.metadata.deletionTimestamp !== undefined) {
    running.get(uid)?.end();
    await request(`${cluster.server}${path}`, { dispatcher, method: "DELETE", body: '{"gracePeriodSeconds":0}' });
    return;
  }
  let it = running.get(uid);
  if (it === undefined) {
    running.set(uid, (it = started(pod)));
    await post(`${path}/binding`, {
      apiVersion: "v1",
      kind: "Binding",
      metadata: { name },
      target: { kind: "Node", name: NODE },
    });
  }
  const { ip } = it;
  const status = it.isReady ? "True" : "False";
  const conditions = [{ type: "Ready", status, lastTransitionTime: "2026-01-01T00:00:00Z" }];
  await keepReported(path, pod, { phase: "Running", podIP: ip, podIPs: [{ ip }], conditions });
}

const written = new Map<string, string>();
/** Envoy reads a file anew as another one is moved to its place. */
function write(name: string, text: string): void {
  if (written.get(name) === text) return;
  written.set(name, text);
  writeFileSync(join(FOLDER, `${name}.new`), text);
  renameSync(join(FOLDER, `${name}.new`), join(FOLDER, name));
}

async function turn(): Promise<void> {
  const gatewayApi = "/apis/gateway.networking.k8s.io/v1";
  const poolApi = "/apis/inference.networking.k8s.io/v1";
  const [classes, gateways, routes, pools, pods, services] = await Promise.all([
    list<Resource & { readonly spec: { readonly controllerName: string } }>(`${gatewayApi}/gatewayclasses`),
    list<Gateway>(`${gatewayApi}/gateways`),
    list<Route>(`${gatewayApi}/httproutes`),
    list<Pool>(`${poolApi}/inferencepools`),
    list<Pod>("/api/v1/pods"),
    list<Service>("/api/v1/services"),
  ]);
  for (const pod of pods) await keepPod(pod);
  const shown: Shown = {
    gateways,
    routes,
    pools,
    services,
    pods: pods.map((pod) => ({
      pod,
      ip: running.get(pod.metadata.uid)?.ip,
      isReady: running.get(pod.metadata.uid)?.isReady === true,
    })),
  };
  for (const [name, text] of Object.entries(envoyFiles(shown))) write(name, text);
  const at = (api: string, kind: string, { metadata: { namespace, name } }: Resource): string =>
    `${api}/namespaces/${namespace}/${kind}/${name}`;
  for (const one of classes) {
    if (one.spec.controllerName !== CONTROLLER) continue;
    const accepted = {
      type: "Accepted",
      status: "True",
      reason: "Accepted",
      message: "",
      lastTransitionTime: "2026-01-01T00:00:00Z",
      observedGeneration: one.metadata.generation,
    };
    await keepReported(`${gatewayApi}/gatewayclasses/${one.metadata.name}`, one, { conditions: [accepted] });
  }
  for (const one of gateways) await keepReported(at(gatewayApi, "gateways", one), one, gatewayStatus(one, shown));
  for (const one of routes)
    await keepReported(at(gatewayApi, "httproutes", one), one, routeStatus(one, shown, CONTROLLER));
  for (const one of pools)
    await keepReported(at(poolApi, "inferencepools", one), one, poolStatus(one, shown, CONTROLLER));
}

await post("/api/v1/nodes", { apiVersion: "v1", kind: "Node", metadata: { name: NODE } });
const empty = { gateways: [], routes: [], pools: [], services: [], pods: [] };
for (const [name, text] of Object.entries(envoyFiles(empty))) write(name, text);
const source = (name: string) => ({ resource_api_version: "V3", path_config_source: { path: join(FOLDER, name) } });
const bootstrap = {
  node: { id: "conformance", cluster: "conformance" },
  dynamic_resources: { lds_config: source("listeners.json"), cds_config: source("clusters.json") },
};
writeFileSync(join(FOLDER, "envoy.json"), JSON.stringify(bootstrap));
const envoy = spawn(
  TEST_ENVOY,
  ["-c", join(FOLDER, "envoy.json"), "--concurrency", "1", "-l", "warn", "--use-dynamic-base-id"],
  {
    stdio: ["ignore", "inherit", "inherit"],
  },
);
const ending = new AbortController();
for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => ending.abort());
while (!ending.signal.aborted) {
  await turn().catch((error: unknown) => process.stderr.write(`${String(error)}\n`));
  await new Promise((resolve) => setTimeout(resolve, TURN_MILLIS));
}
envoy.kill();
for (const { end } of running.values()) end();
await dispatcher.destroy();
process.exit();
