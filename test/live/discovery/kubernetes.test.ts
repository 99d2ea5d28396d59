import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import { discoverKubernetes, type KubernetesOptions } from "#live/discovery/kubernetes.ts";
import type { KeeperEvent } from "#live/discovery/server-keeper.ts";
import type { Target } from "#live/discovery/target.ts";
import { FakeApiServer } from "./fake-api-server.ts";
import { FleetUnderTest, until } from "./fleet-under-test.ts";
import { StubEngine } from "./stub-engine.ts";

const SLICES = "/apis/discovery.k8s.io/v1/namespaces/ns/endpointslices";
const PODS = "/api/v1/namespaces/ns/pods";
const SERVICE = "/api/v1/namespaces/ns/services/vllm";

class Cluster {
  readonly shown: Target[][] = [];
  readonly events: KeeperEvent[] = [];
  readonly api: FakeApiServer;
  readonly #t: TestContext;

  private constructor(t: TestContext, api: FakeApiServer) {
    this.#t = t;
    this.api = api;
  }

  static async start(t: TestContext): Promise<Cluster> {
    const api = await FakeApiServer.start();
    t.after(() => api.stop());
    api.single(SERVICE, { metadata: { name: "vllm" }, spec: { selector: { app: "vllm" } } });
    return new Cluster(t, api);
  }

  async discover(options: Partial<KubernetesOptions> = {}): Promise<void> {
    const discovery = await discoverKubernetes({
      namespace: "ns",
      pods: { service: "vllm" },
      port: 8000,
      setTargets: (targets) => this.shown.push([...targets]),
      report: (event) => this.events.push(event),
      kubeConfig: this.api.kubeConfig,
      retryMillis: 5,
      retryMillisMax: 20,
      ...options,
    });
    this.#t.after(() => discovery.stop());
  }

  /** Ids as they stand, those that are cordoned in brackets. */
  get now(): string[] {
    return (this.shown.at(-1) ?? []).map(({ id, cordoned }) => (cordoned ? `[${id}]` : id));
  }

  async becomes(...ids: string[]): Promise<void> {
    await until(`targets ${ids.join()} (are ${this.now.join()})`, () => this.now.join() === ids.join());
  }
}

interface Conditions {
  ready?: boolean;
  terminating?: boolean;
  serving?: boolean;
}

function slice(name: string, ...endpoints: [address: string, pod: string, conditions?: Conditions][]) {
  return {
    metadata: { name, namespace: "ns" },
    addressType: "IPv4",
    ports: [{ port: 8000 }],
    endpoints: endpoints.map(([address, pod, conditions]) => ({
      addresses: [address],
      conditions,
      zone: "z1",
      targetRef: { kind: "Pod", name: pod, namespace: "ns", uid: `uid-${pod}` },
    })),
  };
}

function pod(name: string, ip: string, labels: Record<string, string>, ready = true, deleted = false) {
  return {
    metadata: {
      name,
      namespace: "ns",
      uid: `uid-${name}`,
      labels,
      ...(deleted && { deletionTimestamp: "2026-01-01T00:00:00Z" }),
    },
    spec: { nodeName: "n1" },
    status: { phase: "Running", podIP: ip, conditions: [{ type: "Ready", status: ready ? "True" : "False" }] },
  };
}

test("pods of a service come, are cordoned while they end, and go", async (t) => {
  const cluster = await Cluster.start(t);
  cluster.api.put(SLICES, slice("a", ["10.0.0.1", "p1"], ["10.0.0.2", "p2", { ready: false }]));
  await cluster.discover();
  await cluster.becomes("http://10.0.0.1:8000");
  assert.ok(cluster.api.seen.includes(`list ${SLICES}?kubernetes.io/service-name=vllm`));
  cluster.api.put(SLICES, slice("a", ["10.0.0.1", "p1"], ["10.0.0.2", "p2", { ready: true }]));
  await cluster.becomes("http://10.0.0.1:8000", "http://10.0.0.2:8000");
  cluster.api.put(
    SLICES,
    slice("a", ["10.0.0.1", "p1", { ready: false, serving: true, terminating: true }], ["10.0.0.2", "p2"]),
  );
  await cluster.becomes("[http://10.0.0.1:8000]", "http://10.0.0.2:8000");
  cluster.api.put(SLICES, slice("a", ["10.0.0.2", "p2", { ready: false }]));
  await cluster.becomes("[http://10.0.0.2:8000]");
  cluster.api.put(SLICES, slice("a", ["10.0.0.2", "p2"]));
  await cluster.becomes("http://10.0.0.2:8000");
  cluster.api.delete(SLICES, "a");
  await cluster.becomes();
});

test("an endpoint in two slices is one target, and serves when one of them says so", async (t) => {
  const cluster = await Cluster.start(t);
  cluster.api.put(SLICES, slice("a", ["10.0.0.1", "p1", { ready: false }]));
  cluster.api.put(SLICES, slice("b", ["10.0.0.1", "p1"]));
  await cluster.discover();
  await cluster.becomes("http://10.0.0.1:8000");
  cluster.api.delete(SLICES, "b");
  await cluster.becomes("[http://10.0.0.1:8000]");
});

test("labels come from the pods that the service selects, and follow them", async (t) => {
  const cluster = await Cluster.start(t);
  cluster.api.put(PODS, pod("p1", "10.0.0.1", { app: "vllm", role: "decode" }));
  cluster.api.put(SLICES, slice("a", ["10.0.0.1", "p1"]));
  await cluster.discover();
  const labels = () => cluster.shown.at(-1)?.[0]?.labels ?? {};
  await until("labels", () => labels()["role"] === "decode");
  assert.deepEqual(labels(), {
    app: "vllm",
    role: "decode",
    "kubernetes.io/pod": "p1",
    "topology.kubernetes.io/zone": "z1",
  });
  assert.ok(cluster.api.seen.includes(`list ${PODS}?app=vllm`));
  cluster.api.put(PODS, pod("p1", "10.0.0.1", { app: "vllm", role: "prefill" }));
  await until("new labels", () => labels()["role"] === "prefill");
});

test("a pod that took another's address is another endpoint", async (t) => {
  const cluster = await Cluster.start(t);
  cluster.api.put(SLICES, slice("a", ["10.0.0.1", "p1"], ["10.0.0.2", "p2"]));
  await cluster.discover();
  await cluster.becomes("http://10.0.0.1:8000", "http://10.0.0.2:8000");
  const before = cluster.shown.length;
  cluster.api.put(SLICES, slice("a", ["10.0.0.1", "p9"], ["10.0.0.2", "p2"]));
  await until("two steps", () => cluster.shown.length >= before + 2);
  const steps = cluster.shown.slice(before, before + 2).map((targets) => targets.map(({ id }) => id));
  assert.deepEqual(steps, [["http://10.0.0.2:8000"], ["http://10.0.0.1:8000", "http://10.0.0.2:8000"]]);
});

test("with a selector the pods themselves are followed", async (t) => {
  const cluster = await Cluster.start(t);
  cluster.api.put(PODS, pod("p1", "10.0.0.1", { app: "x" }));
  cluster.api.put(PODS, pod("p2", "fd00::2", { app: "x" }));
  cluster.api.put(PODS, pod("p3", "", { app: "x" }));
  await cluster.discover({ pods: { selector: "app=x" }, dataParallelRanks: 2, apiKey: "sk-1" });
  await cluster.becomes(
    "http://10.0.0.1:8000#0",
    "http://10.0.0.1:8000#1",
    "http://[fd00::2]:8000#0",
    "http://[fd00::2]:8000#1",
  );
  assert.deepEqual(cluster.shown.at(-1)![1]!.dataParallelRank, 1);
  assert.equal(cluster.shown.at(-1)![1]!.apiKey, "sk-1");
  cluster.api.put(PODS, pod("p2", "fd00::2", { app: "x" }, true, true));
  cluster.api.put(PODS, pod("p1", "10.0.0.1", { app: "x" }, false));
  await until("both cordoned", () => cluster.now.every((id) => id.startsWith("[")));
  cluster.api.delete(PODS, "p2");
  await cluster.becomes("[http://10.0.0.1:8000#0]", "[http://10.0.0.1:8000#1]");
});

test("a watch that ends goes on from its version, and one that breaks too", async (t) => {
  const cluster = await Cluster.start(t);
  cluster.api.put(SLICES, slice("a", ["10.0.0.1", "p1"]));
  await cluster.discover();
  for (const [i, cleanly] of [true, false].entries()) {
    await until("watching", () => cluster.api.watchers(SLICES) === 1);
    cluster.api.hangUp(SLICES, cleanly);
    await until("hung up", () => cluster.api.watchers(SLICES) === 0);
    cluster.api.put(SLICES, slice(`b${i}`, [`10.0.1.${i}`, `q${i}`]));
    await until("the change", () => cluster.now.includes(`http://10.0.1.${i}:8000`));
  }
  assert.equal(cluster.api.seen.filter((line) => line.startsWith(`list ${SLICES}`)).length, 1);
});

test("a version that is gone makes it list again, and what vanished meanwhile leaves", async (t) => {
  const cluster = await Cluster.start(t);
  cluster.api.put(SLICES, slice("a", ["10.0.0.1", "p1"]));
  cluster.api.put(SLICES, slice("b", ["10.0.0.2", "p2"]));
  await cluster.discover();
  await until("watching", () => cluster.api.watchers(SLICES) === 1);
  cluster.api.forget(SLICES, "a");
  cluster.api.event(SLICES, "ERROR", { kind: "Status", code: 410, metadata: {} });
  await cluster.becomes("http://10.0.0.2:8000");
  await until("watching again", () => cluster.api.watchers(SLICES) === 1);
});

test("bookmarks move the version on", async (t) => {
  const cluster = await Cluster.start(t);
  await cluster.discover();
  await until("watching", () => cluster.api.watchers(SLICES) === 1);
  cluster.api.event(SLICES, "BOOKMARK", { metadata: { resourceVersion: "5000" } });
  cluster.api.hangUp(SLICES, true);
  await until("from there", () => cluster.api.seen.includes(`watch ${SLICES}@5000`));
});

test("while the API server fails nothing is taken away; it is said once, with no credential, and when it is over", async (t) => {
  const cluster = await Cluster.start(t);
  cluster.api.put(SLICES, slice("a", ["10.0.0.1", "p1"]));
  await cluster.discover();
  await cluster.becomes("http://10.0.0.1:8000");
  await until("watching", () => cluster.api.watchers(SLICES) === 1);
  cluster.api.status = 500;
  cluster.api.hangUp(SLICES, false);
  const asked = cluster.api.seen.length;
  await until("several tries", () => cluster.api.seen.length > asked + 4);
  const about = () => cluster.events.filter(({ subject }) => subject === "endpoint slices of vllm");
  assert.ok(about().length <= 2, "not once per try");
  assert.equal(about().at(-1)!.detail, "the API server answered 500");
  cluster.api.status = undefined;
  cluster.api.put(SLICES, slice("b", ["10.0.0.2", "p2"]));
  await until("recovered", () => about().at(-1)!.kind === "source-recovered");
  await cluster.becomes("http://10.0.0.1:8000", "http://10.0.0.2:8000");
  assert.ok(cluster.shown.every((targets, i) => i === 0 || targets.length > 0));
  assert.ok(!JSON.stringify(cluster.events).includes("cluster-secret"));
});

test("without the right to read the service the pods have no labels, and are found all the same", async (t) => {
  const cluster = await Cluster.start(t);
  cluster.api.status = 403;
  await cluster.discover();
  await until("said", () => cluster.events.some(({ subject }) => subject === "service vllm"));
  cluster.api.status = undefined;
  cluster.api.put(SLICES, slice("a", ["10.0.0.1", "p1"]));
  await cluster.becomes("http://10.0.0.1:8000");
  assert.deepEqual(Object.keys(cluster.shown.at(-1)![0]!.labels), ["kubernetes.io/pod", "topology.kubernetes.io/zone"]);
});

test("from the cluster to the router: a pod joins, is cordoned and leaves", async (t) => {
  const engine = await StubEngine.start();
  t.after(() => engine.kill());
  const fleet = new FleetUnderTest();
  t.after(() => fleet.keeper.stop());
  const cluster = await Cluster.start(t);
  cluster.api.put(SLICES, slice("a", ["127.0.0.1", "p1"]));
  await cluster.discover({
    port: engine.port,
    setTargets: (targets) => fleet.keeper.setTargets("kubernetes", targets),
  });
  await until("joined", () => fleet.row(engine.url) !== undefined);
  cluster.api.put(SLICES, slice("a", ["127.0.0.1", "p1", { ready: false, terminating: true }]));
  await until("cordoned", () => fleet.row(engine.url)!.cordoned);
  cluster.api.delete(SLICES, "a");
  await until("left", () => fleet.row(engine.url) === undefined);
  assert.deepEqual(fleet.directory.all(), []);
});
