import { spawn } from "node:child_process";
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join, relative, resolve } from "node:path";
import { parse, stringify } from "yaml";
import { RealCluster } from "../../live/discovery/real-cluster.ts";
import { ClusterClient } from "../kubelet/cluster-client.ts";
import { HandKubelet } from "../kubelet/hand-kubelet.ts";
import type { Service } from "../kubelet/pod-objects.ts";
import { POD_ADDRESSES, SERVICE_ADDRESSES } from "../kubelet/private-network.ts";
import { startControlPlanes, SYSTEM } from "./control-planes.ts";
import { until } from "./until.ts";

/** What became of requests that were sent through the Gateway while something happened. */
export interface Phase {
  readonly during: string;
  readonly sent: number;
  /** By status, or what the connection said. */
  readonly others: Readonly<Record<string, number>>;
}

export interface GatewayWalk {
  readonly phases: readonly Phase[];
  /** Of the counter of questions by the proxy, of the picker that took the first one's place. */
  readonly questions: number;
  /** What the picker that was replaced logged as it had drained. */
  readonly drained: string;
  readonly pods: readonly string[];
  /** Of Envoy's access log, the lines of requests that were not answered with 200. */
  readonly refused: readonly string[];
}

const ROOT = resolve(import.meta.dirname, "../../..");
const { TEST_ENVOY = "", TEST_ENVOY_GATEWAY = "", WALK_FOLDER = "" } = process.env;
const GNOMON = [process.execPath, join(ROOT, "bin/gnomon.js")];
const ENGINES = 3;
const AT_ONCE = 8;
const REQUESTS = { before: 60, during: 320 };

/** As the guide says: a class, a Gateway and the policy of its route; the service is one of the cluster alone. */
function gatewayObjects(): object[] {
  const guide = readFileSync(join(ROOT, "docs/gateways.md"), "utf8");
  const [, policy] = /```yaml\n(apiVersion: gateway\.envoyproxy\.io[\s\S]*?)```/.exec(guide)!;
  const parametersRef = { group: "gateway.envoyproxy.io", kind: "EnvoyProxy", name: "inner", namespace: "infer" };
  return [
    {
      apiVersion: "gateway.envoyproxy.io/v1alpha1",
      kind: "EnvoyProxy",
      metadata: { name: "inner", namespace: "infer" },
      spec: { provider: { type: "Kubernetes", kubernetes: { envoyService: { type: "ClusterIP" } } } },
    },
    {
      apiVersion: "gateway.networking.k8s.io/v1",
      kind: "GatewayClass",
      metadata: { name: "envoy" },
      spec: { controllerName: "gateway.envoyproxy.io/gatewayclass-controller", parametersRef },
    },
    {
      apiVersion: "gateway.networking.k8s.io/v1",
      kind: "Gateway",
      metadata: { name: "inference-gateway", namespace: "infer" },
      spec: { gatewayClassName: "envoy", listeners: [{ name: "http", protocol: "HTTP", port: 80 }] },
    },
    { ...(parse(policy!) as { metadata: object }), metadata: { name: "vllm", namespace: "infer" } },
  ];
}

function engines(): object {
  const [, script = ""] = GNOMON;
  const command = [
    "/usr/local/bin/node",
    script,
    "emulate",
    "--count",
    "1",
    "--host",
    "0.0.0.0",
    "--port-base",
    "8000",
  ];
  const container = {
    name: "vllm",
    image: "gnomon:0.1.0",
    command,
    readinessProbe: { httpGet: { path: "/health", port: 8000 } },
  };
  const labels = { app: "vllm" };
  return {
    apiVersion: "apps/v1",
    kind: "Deployment",
    metadata: { name: "vllm", namespace: "infer" },
    spec: {
      replicas: ENGINES,
      selector: { matchLabels: labels },
      template: { metadata: { labels }, spec: { terminationGracePeriodSeconds: 60, containers: [container] } },
    },
  };
}

/** gnomon as the picker of the pool, by the components of k8s/. */
function pickerFolder(): string {
  const folder = join(WALK_FOLDER, "picker");
  mkdirSync(folder);
  const at = (name: string): string => relative(folder, join(ROOT, "k8s", name));
  const kustomization = { namespace: "infer", resources: [at("base")], components: [at("components/inference-pool")] };
  writeFileSync(join(folder, "kustomization.yaml"), stringify(kustomization));
  return folder;
}

/** Sends until so many were answered and what happens meanwhile is over. */
async function send(during: string, url: string, count: number, meanwhile: Promise<unknown>): Promise<Phase> {
  const state = { over: false };
  void meanwhile.finally(() => (state.over = true)).catch(() => undefined);
  const others: Record<string, number> = {};
  let sent = 0;
  await Promise.all(
    Array.from({ length: AT_ONCE }, async () => {
      while (sent < count || !state.over) {
        const outcome = await ask(url, sent++);
        if (outcome !== "200") others[outcome] = (others[outcome] ?? 0) + 1;
      }
    }),
  );
  await meanwhile;
  return { during, sent, others };
}

/** A status, "200" only for a whole answer. */
async function ask(url: string, number: number): Promise<string> {
  const messages = [{ role: "user", content: `Question ${number}: ${"how does a sundial show the hour? ".repeat(8)}` }];
  try {
    const answer = await fetch(`${url}/v1/chat/completions`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ model: "llama-3.1-8b", max_tokens: 8, messages }),
    });
    const text = await answer.text();
    if (answer.status !== 200) return `${answer.status} ${text.slice(0, 200)}`;
    return /"finish_reason":"length"/.test(text) ? "200" : `200 without an end: ${text.slice(0, 200)}`;
  } catch (error) {
    return String(error instanceof Error ? (error.cause ?? error) : error);
  }
}

async function walk(): Promise<GatewayWalk> {
  process.env["APISERVER_FLAGS"] = `--advertise-address ${SERVICE_ADDRESSES.at(-1)!}`;
  const cluster = new RealCluster();
  await cluster.start();
  const client = new ClusterClient(cluster.folder, cluster.port);
  const kubeconfig = join(cluster.folder, "admin.kubeconfig");
  cluster.define(join(TEST_ENVOY_GATEWAY, "definitions"));
  for (const name of ["infer", SYSTEM]) cluster.apply({ apiVersion: "v1", kind: "Namespace", metadata: { name } });
  const kubelet = new HandKubelet({
    client,
    namespaces: ["infer", SYSTEM],
    apiServerPort: cluster.port,
    folder: WALK_FOLDER,
    entrypointOf: (image) =>
      image.includes("envoyproxy/envoy") ? [TEST_ENVOY] : image === "gnomon:0.1.0" ? GNOMON : undefined,
    addressesOfPods: POD_ADDRESSES,
    addressesOfServices: SERVICE_ADDRESSES,
  });
  await kubelet.start();
  await startControlPlanes({
    programs: TEST_ENVOY_GATEWAY,
    client,
    kubeconfig,
    apiServerPort: cluster.port,
    folder: WALK_FOLDER,
  });
  try {
    // Nothing here may stand still while a command runs: kubelet, clients and the bridge are of this process.
    const kubectl = (argv: readonly string[], input?: object): Promise<void> => runKubectl(kubeconfig, argv, input);
    await kubectl(["apply", "-f", "-"], { apiVersion: "v1", kind: "List", items: [engines(), ...gatewayObjects()] });
    await kubectl(["apply", "-k", pickerFolder()]);
    const rolledOut = (name: string): Promise<void> =>
      kubectl(["-n", "infer", "rollout", "status", `deployment/${name}`, "--timeout=120s"]);
    await rolledOut("vllm");
    await rolledOut("gnomon");
    const service = await until("the Gateway's service", async () => {
      const found = await client.list<Service>(`/api/v1/namespaces/${SYSTEM}/services`);
      return found.find(({ metadata }) => metadata.name.startsWith("envoy-infer-inference-gateway"));
    });
    const url = `http://${service.metadata.name}.${SYSTEM}`;
    await until("an answer through the Gateway", async () => (await ask(url, 0)) === "200");
    const phases = [await send("nothing", url, REQUESTS.before, Promise.resolve())];
    for (const name of ["gnomon", "vllm"]) {
      const replaced = (async () => {
        await kubectl(["-n", "infer", "rollout", "restart", `deployment/${name}`]);
        await rolledOut(name);
      })();
      phases.push(await send(`a rollout of deployment/${name}`, url, REQUESTS.during, replaced));
    }
    const questions = await questionsOf(kubelet);
    const drained = await until("the first picker's end", () => logLines(/^gnomon-.*\.log$/, /"event":"drained"/)[0]);
    return { phases, questions, drained, pods: kubelet.commands, refused: refusedLines() };
  } finally {
    await kubelet.stop();
    cluster.stop();
  }
}

function refusedLines(): string[] {
  return logLines(/^envoy-infer.*\.log$/, /"response_code":(?!200\b)/);
}

function logLines(names: RegExp, wanted: RegExp): string[] {
  const logs = readdirSync(WALK_FOLDER).filter((name) => names.test(name));
  const lines = logs.flatMap((name) => readFileSync(join(WALK_FOLDER, name), "utf8").split("\n"));
  return lines.filter((line) => wanted.test(line));
}

/** Of the pickers that are there at the end. */
async function questionsOf(kubelet: HandKubelet): Promise<number> {
  let sum = 0;
  for (const address of kubelet.readyPods({ "app.kubernetes.io/name": "gnomon" })) {
    const text = await (await fetch(`http://${address}:8080/metrics`)).text();
    for (const [, value] of text.matchAll(/^gnomon_picker_streams_total(?:\{[^}]*\})? (\d+)/gm)) sum += Number(value);
  }
  return sum;
}

function runKubectl(kubeconfig: string, argv: readonly string[], input: object | undefined): Promise<void> {
  const program = join(process.env["TEST_KUBE"] ?? "", "bin/kubectl");
  const child = spawn(program, ["--kubeconfig", kubeconfig, ...argv], { stdio: ["pipe", "ignore", "inherit"] });
  child.stdin.end(input === undefined ? "" : JSON.stringify(input));
  return new Promise((resolve, reject) => {
    child.once("close", (code) => (code === 0 ? resolve() : reject(new Error(`kubectl ${argv.join(" ")}: ${code}`))));
  });
}

if (import.meta.main) process.stdout.write(`\n${JSON.stringify(await walk())}\n`, () => process.exit());
