import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import { discoverKubernetes, type KubernetesOptions, type KubernetesSource } from "#live/discovery/kubernetes.ts";
import type { KeeperEvent } from "#live/endpoints/keeper-event.ts";
import { SourceBoard } from "#live/endpoints/source-board.ts";
import type { Target } from "#live/endpoints/target.ts";
import type { WorkloadRules } from "#live/discovery/workload-rules.ts";
import { FakeApiServer } from "./fake-api-server.ts";
import { FleetUnderTest, until } from "./fleet-under-test.ts";
import { StubEngine } from "./stub-engine.ts";

const SLICES = "/apis/discovery.k8s.io/v1/namespaces/ns/endpointslices";
const PODS = "/api/v1/namespaces/ns/pods";
const SERVICES = "/api/v1/namespaces/ns/services";

class Cluster {
  readonly shown: Target[][] = [];
  readonly events: KeeperEvent[] = [];
  readonly board = new SourceBoard();
  readonly api: FakeApiServer;
  readonly #t: TestContext;

  private constructor(t: TestContext, api: FakeApiServer) {
    this.#t = t;
    this.api = api;
  }

  static async start(t: TestContext): Promise<Cluster> {
    const api = await FakeApiServer.start();
    t.after(() => api.stop());
    api.put(SERVICES, service({ app: "vllm" }));
    return new Cluster(t, api);
  }

  async discover(
    source: Partial<KubernetesSource> = {},
    options: Partial<Omit<KubernetesOptions, "sources">> & { more?: readonly KubernetesSource[] } = {},
  ): Promise<void> {
    const { more = [], ...rest } = options;
    const discovery = await discoverKubernetes({
      sources: [{ namespace: "ns", pods: { service: "vllm" }, ...source }, ...more],
      board: this.board,
      setTargets: (targets) => this.shown.push([...targets]),
      report: (event) => this.events.push(event),
      kubeContext: this.api.kubeContext,
      retryMillis: 5,
      retryMillisMax: 20,
      ...rest,
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

function service(selector?: Record<string, string>) {
  return { metadata: { name: "vllm", namespace: "ns" }, spec: selector === undefined ? {} : { selector } };
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

test("a long list is asked for page by page, and none of it is missing", async (t) => {
  const cluster = await Cluster.start(t);
  const names = Array.from({ length: 600 }, (_, i) => `p${i}`);
  for (const [i, name] of names.entries())
    cluster.api.put(PODS, pod(name, `10.0.${i >> 8}.${i & 255}`, { app: "vllm" }));
  await cluster.discover({ pods: { selector: "app=vllm" } });
  await until("all pods are known", () => cluster.now.length === 600);
  const pages = cluster.api.queries.filter(({ path, watch }) => path === PODS && !watch);
  assert.deepEqual(
    pages.slice(0, 3).map(({ search }) => [search.get("limit"), search.get("continue")]),
    [
      ["250", null],
      ["250", "250"],
      ["250", "500"],
    ],
  );
});

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

test("an endpoint in two slices is one target, and serves when one of them states it", async (t) => {
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
  await until("all lists read", () => [SLICES, SERVICES, PODS].every((path) => cluster.api.watchers(path) === 1));
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

test("while the API server fails nothing is taken away; it is reported once, with no credential, and when it is over", async (t) => {
  const cluster = await Cluster.start(t);
  cluster.api.put(SLICES, slice("a", ["10.0.0.1", "p1"]));
  await cluster.discover();
  await cluster.becomes("http://10.0.0.1:8000");
  await until("watching", () => cluster.api.watchers(SLICES) === 1);
  cluster.api.status = 500;
  cluster.api.hangUp(SLICES, false);
  const asked = cluster.api.seen.length;
  await until("several tries", () => cluster.api.seen.length > asked + 4);
  const about = () => cluster.events.filter(({ subject }) => subject === "endpointslices ns/vllm");
  assert.ok(about().length <= 2, "not once per try");
  // The connection that was hung up may be what the first try meets.
  const why =
    /^watch endpointslices\.discovery\.k8s\.io in namespace ns: (status 500|the API server cannot be reached \(UND_ERR_SOCKET\))$/;
  assert.match(about().at(-1)!.detail, why);
  cluster.api.status = undefined;
  cluster.api.put(SLICES, slice("b", ["10.0.0.2", "p2"]));
  await until("recovered", () => about().at(-1)!.kind === "source-recovered");
  await cluster.becomes("http://10.0.0.1:8000", "http://10.0.0.2:8000");
  assert.ok(cluster.shown.every((targets, i) => i === 0 || targets.length > 0));
  assert.ok(!JSON.stringify(cluster.events).includes("cluster-secret"));
});

test("labels come once the service can be read, however late, and a denial names verb, resource, namespace and status", async (t) => {
  const cluster = await Cluster.start(t);
  cluster.api.put(PODS, pod("p1", "10.0.0.1", { app: "vllm", role: "decode" }));
  cluster.api.put(SLICES, slice("a", ["10.0.0.1", "p1"]));
  cluster.api.denied.set(SERVICES, 403);
  await cluster.discover();
  await cluster.becomes("http://10.0.0.1:8000");
  assert.deepEqual(Object.keys(cluster.shown.at(-1)![0]!.labels), ["kubernetes.io/pod", "topology.kubernetes.io/zone"]);
  const about = () => cluster.events.filter(({ subject }) => subject === "services ns/vllm");
  await until("reported", () => about().length === 1);
  const why = "status 403: the service account lacks the right; a Role must grant list and watch";
  assert.deepEqual(about(), [
    { kind: "source-failed", subject: "services ns/vllm", detail: `list services in namespace ns: ${why}` },
  ]);
  cluster.api.denied.delete(SERVICES);
  await until("labels", () => cluster.shown.at(-1)![0]!.labels["role"] === "decode");
  assert.deepEqual(about().at(-1), { kind: "source-recovered", subject: "services ns/vllm", detail: "" });
});

test("a service that selects other pods from now on brings their labels", async (t) => {
  const cluster = await Cluster.start(t);
  cluster.api.put(SLICES, slice("a", ["10.0.0.1", "p1"]));
  cluster.api.put(PODS, pod("p1", "10.0.0.1", { app: "vllm", role: "decode" }));
  await cluster.discover();
  await until("watching", () => cluster.api.watchers(PODS) === 1);
  cluster.api.put(SERVICES, service({ app: "other" }));
  await until("another list", () => cluster.api.seen.includes(`list ${PODS}?app=other`));
  await until("one watch", () => cluster.api.watchers(PODS) === 1);
});

test("a service without a selector has endpoints without labels, and nobody lists all pods of the namespace", async (t) => {
  const cluster = await Cluster.start(t);
  cluster.api.put(SERVICES, service());
  cluster.api.put(PODS, pod("p1", "10.0.0.1", { app: "someone-elses", role: "prefill" }));
  cluster.api.put(SLICES, slice("a", ["10.0.0.1", "p1"]));
  await cluster.discover();
  await cluster.becomes("http://10.0.0.1:8000");
  await until("the service is followed", () => cluster.api.watchers(SERVICES) === 1);
  assert.equal(cluster.shown.at(-1)![0]!.labels["role"], undefined);
  assert.deepEqual(
    cluster.api.seen.filter((line) => line.includes(PODS)),
    [],
  );
});

test("a service that is not there is reported, and so is that it came", async (t) => {
  const cluster = await Cluster.start(t);
  cluster.api.delete(SERVICES, "vllm");
  await cluster.discover();
  const about = () => cluster.events.filter(({ subject }) => subject === "service ns/vllm").map(({ kind }) => kind);
  await until("missing", () => about().join() === "source-missing");
  cluster.api.put(SERVICES, service({ app: "vllm" }));
  await until("there", () => about().join() === "source-missing,source-recovered");
});

const BOTH_ADDRESSES = { ipv4: "10.0.0.1", ipv6: "fd00::1" };
const AT = { ipv4: "http://10.0.0.1:8000", ipv6: "http://[fd00::1]:8000" };

function podOfBoth(...families: (keyof typeof BOTH_ADDRESSES)[]) {
  const both = pod("p1", BOTH_ADDRESSES[families[0]!], { app: "vllm" });
  Object.assign(both.status, { podIPs: families.map((family) => ({ ip: BOTH_ADDRESSES[family] })) });
  return both;
}

function serviceOf(...ipFamilies: string[]) {
  return { ...service(), spec: { selector: { app: "vllm" }, ipFamilies } };
}

function orders<T>(things: readonly T[]): T[][] {
  if (things.length === 0) return [[]];
  return things.flatMap((one) => orders(things.filter((other) => other !== one)).map((rest) => [one, ...rest]));
}

test("a pod with an address of each family is one endpoint, of the family asked for, in whatever order it is learned", async (t) => {
  for (const addressFamily of ["ipv4", "ipv6"] as const) {
    const other = addressFamily === "ipv4" ? "ipv6" : "ipv4";
    for (const order of orders(["service", "pod", "ipv4", "ipv6"] as const)) {
      const cluster = await Cluster.start(t);
      cluster.api.delete(SERVICES, "vllm");
      await cluster.discover({ addressFamily });
      await until("followed", () => cluster.api.watchers(SLICES) === 1 && cluster.api.watchers(SERVICES) === 1);
      for (const what of order) {
        const before = cluster.shown.length;
        if (what === "service") cluster.api.put(SERVICES, serviceOf("IPv4", "IPv6"));
        else if (what === "pod") cluster.api.put(PODS, podOfBoth("ipv6", "ipv4"));
        else cluster.api.put(SLICES, slice(what, [BOTH_ADDRESSES[what], "p1"]));
        const known = new Set(order.slice(0, order.indexOf(what) + 1));
        // Before there is a service nobody asks for its pods.
        if (what !== "pod" || known.has("service")) await until("seen", () => cluster.shown.length > before);
        if (known.has("service") && known.has("pod")) await until("pods", () => cluster.api.watchers(PODS) === 1);
      }
      await cluster.becomes(AT[addressFamily]);
      const first = order.find((what) => what === "ipv4" || what === "ipv6");
      const knownFirst = order.indexOf("service") < 2 && order.indexOf("pod") < 2;
      const reached = cluster.shown.some((targets) => targets.some(({ id }) => id === AT[other]));
      if (knownFirst) assert.equal(reached, false, `${order.join()}: never at the other address`);
      else assert.ok(!reached || first === other, order.join());
    }
  }
});

test("an address of the other family counts where the pod or the service has no other", async (t) => {
  for (const [families, its] of [
    [["IPv6"], podOfBoth("ipv4", "ipv6")],
    [["IPv4", "IPv6"], podOfBoth("ipv6")],
  ] as const) {
    const cluster = await Cluster.start(t);
    cluster.api.put(SERVICES, serviceOf(...families));
    cluster.api.put(PODS, its);
    cluster.api.put(SLICES, slice("ipv6", ["fd00::1", "p1"]));
    await cluster.discover();
    await cluster.becomes(AT.ipv6);
    await until("all lists read", () => [SLICES, SERVICES, PODS].every((path) => cluster.api.watchers(path) === 1));
    await cluster.becomes(AT.ipv6);
  }
});

test("a pod that is reached at the other family's address moves once its own one serves, and not before", async (t) => {
  const cluster = await Cluster.start(t);
  cluster.api.put(SERVICES, serviceOf("IPv6"));
  cluster.api.put(PODS, podOfBoth("ipv6", "ipv4"));
  cluster.api.put(SLICES, slice("ipv6", ["fd00::1", "p1"]));
  await cluster.discover();
  await cluster.becomes(AT.ipv6);
  await until("all lists read", () => [SLICES, SERVICES, PODS].every((path) => cluster.api.watchers(path) === 1));
  for (const change of [
    () => cluster.api.put(SERVICES, serviceOf("IPv6", "IPv4")),
    () => cluster.api.put(SLICES, slice("ipv4", ["10.0.0.1", "p1", { ready: false }])),
  ]) {
    const before = cluster.shown.length;
    change();
    await until("seen", () => cluster.shown.length > before);
    await cluster.becomes(AT.ipv6);
  }
  cluster.api.put(SLICES, slice("ipv4", ["10.0.0.1", "p1"]));
  await cluster.becomes(AT.ipv4);
  assert.ok(cluster.shown.slice(-10).every((targets) => targets.length === 1));
});

test("with a selector a pod of both families is one endpoint too", async (t) => {
  const cluster = await Cluster.start(t);
  const both = pod("p1", "10.0.0.1", { app: "x" });
  Object.assign(both.status, { podIPs: [{ ip: "10.0.0.1" }, { ip: "fd00::1" }] });
  cluster.api.put(PODS, both);
  await cluster.discover({ pods: { selector: "app=x" }, addressFamily: "ipv6" });
  await cluster.becomes("http://[fd00::1]:8000");
});

test("the port and the scheme are the slice's own: the only one, the one named, or https by appProtocol", async (t) => {
  const two = [
    { name: "metrics", port: 9090 },
    { name: "http", port: 8200 },
  ];
  const cases: [ports: object[], source: Partial<KubernetesSource>, id: string][] = [
    [[{ name: "x", port: 8100 }], {}, "http://10.0.0.1:8100"],
    [two, {}, "http://10.0.0.1:8200"],
    [two, { portName: "metrics" }, "http://10.0.0.1:9090"],
    [two, { port: 7000, scheme: "https" }, "https://10.0.0.1:7000"],
    [[{ name: "x", port: 8443, appProtocol: "https" }], {}, "https://10.0.0.1:8443"],
    [[], {}, "http://10.0.0.1:8000"],
  ];
  for (const [ports, source, id] of cases) {
    const cluster = await Cluster.start(t);
    cluster.api.put(SLICES, { ...slice("a", ["10.0.0.1", "p1"]), ports });
    await cluster.discover(source);
    await cluster.becomes(id);
  }
});

test("a pod without the port that was asked for is left out and reported once", async (t) => {
  const cluster = await Cluster.start(t);
  cluster.api.put(SLICES, slice("a", ["10.0.0.1", "p1"]));
  await cluster.discover({ portName: "grpc" });
  await until("reported", () => cluster.events.some(({ kind }) => kind === "refused"));
  cluster.api.put(SLICES, slice("a", ["10.0.0.1", "p1", { ready: true }]));
  cluster.api.put(SLICES, slice("b", ["10.0.0.2", "p2"]));
  await until("the second", () => cluster.events.some(({ subject }) => subject === "pod 10.0.0.2"));
  const refused = cluster.events.filter(({ kind }) => kind === "refused");
  assert.deepEqual(
    refused.map(({ subject, detail }) => [subject, detail]),
    [
      ["pod 10.0.0.1", "it has no port named grpc"],
      ["pod 10.0.0.2", "it has no port named grpc"],
    ],
  );
  assert.deepEqual(cluster.now, []);
});

test("several sources are one fleet; an endpoint of two is described by the first, and stays with the second", async (t) => {
  const cluster = await Cluster.start(t);
  const others = "/apis/discovery.k8s.io/v1/namespaces/other/endpointslices";
  cluster.api.put(SLICES, slice("a", ["10.0.0.1", "p1"], ["10.0.0.2", "p2"]));
  cluster.api.put(others, slice("b", ["10.0.0.2", "p2"], ["10.0.0.3", "p3"]));
  const more = [{ namespace: "other", pods: { service: "vllm" }, labels: { from: "second" } }];
  await cluster.discover({ labels: { from: "first" } }, { more });
  const from = () => (cluster.shown.at(-1) ?? []).map(({ id, labels }) => `${id.slice(14, 15)} ${labels["from"]}`);
  await until("all three", () => from().toSorted().join() === "1 first,2 first,3 second");
  cluster.api.put(SLICES, slice("a", ["10.0.0.1", "p1"]));
  await until("the second has it", () => from().toSorted().join() === "1 first,2 second,3 second");
});

test("a model can come from a label instead of the engine", async (t) => {
  const engine = await StubEngine.start();
  t.after(() => engine.kill());
  const fleet = new FleetUnderTest();
  t.after(() => fleet.keeper.stop());
  const cluster = await Cluster.start(t);
  const labelled = (model: string) => pod("p1", "127.0.0.1", { app: "x", "llm-d.ai/model": model });
  cluster.api.put(PODS, labelled("llama"));
  await cluster.discover(
    { pods: { selector: "app=x" }, port: engine.port, modelLabel: "llm-d.ai/model" },
    { setTargets: (targets) => fleet.keeper.setTargets("kubernetes", targets) },
  );
  await until("joined", () => fleet.row(engine.url) !== undefined);
  const models = () => fleet.directory.all()[0]!.models.map(({ id }) => id);
  assert.deepEqual(models(), ["llama"]);
  cluster.api.put(PODS, labelled("qwen"));
  await until("another model", () => models().join() === "qwen");
  assert.ok(fleet.story(engine.url).includes("endpoint-changed"));
});

const POOLS = "/apis/inference.networking.k8s.io/v1/namespaces/ns/inferencepools";

test("an InferencePool names pods by its selector and engines by its target ports, and both are followed", async (t) => {
  const cluster = await Cluster.start(t);
  const pool = (app: string, ...ports: number[]) => ({
    metadata: { name: "llama", namespace: "ns" },
    spec: { selector: { matchLabels: { app } }, targetPorts: ports.map((number) => ({ number })) },
  });
  cluster.api.put(POOLS, pool("x", 8000));
  cluster.api.put(PODS, pod("p1", "10.0.0.1", { app: "x" }));
  await cluster.discover({ pods: { pool: "llama", version: "v1" } });
  await cluster.becomes("http://10.0.0.1:8000");
  assert.ok(cluster.api.seen.includes(`list ${PODS}?app=x`));
  cluster.api.put(POOLS, pool("x", 8000, 8001));
  await cluster.becomes("http://10.0.0.1:8000", "http://10.0.0.1:8001");
  cluster.api.put(POOLS, pool("y", 8000));
  await until("another selector", () => cluster.api.seen.includes(`list ${PODS}?app=y`));
  cluster.api.delete(POOLS, "llama");
  await cluster.becomes();
  const { kind, detail } = cluster.events.at(-1)!;
  assert.deepEqual([kind, detail], ["source-missing", "there is no such pool"]);
});

test("a pool of the version before has its own group and one port", async (t) => {
  const cluster = await Cluster.start(t);
  cluster.api.put("/apis/inference.networking.x-k8s.io/v1alpha2/namespaces/ns/inferencepools", {
    metadata: { name: "llama", namespace: "ns" },
    spec: { selector: { app: "x" }, targetPortNumber: 8200 },
  });
  cluster.api.put(PODS, pod("p1", "10.0.0.1", { app: "x" }));
  await cluster.discover({ pods: { pool: "llama", version: "v1alpha2" } });
  await cluster.becomes("http://10.0.0.1:8200");
});

test("objectives and rewrites of the pool are followed, in either group, and not where nobody asked", async (t) => {
  for (const group of ["llm-d.ai", "inference.networking.x-k8s.io"] as const) {
    const cluster = await Cluster.start(t);
    const path = (resource: string) => `/apis/${group}/v1alpha2/namespaces/ns/${resource}`;
    const poolRef = { name: "llama", group: "inference.networking.k8s.io" };
    const objective = (priority: number) => ({ metadata: { name: "urgent" }, spec: { poolRef, priority } });
    cluster.api.put(path("inferenceobjectives"), objective(5));
    const shown: WorkloadRules[] = [];
    const pods = { pool: "llama", version: "v1", workloads: group } as const;
    await cluster.discover({ pods }, { setWorkloads: (rules) => shown.push(rules) });
    await until("known", () => shown.at(-1)?.priorities["urgent"] === 5);
    cluster.api.put(path("inferenceobjectives"), objective(-1));
    const rules = [{ targets: [{ modelRewrite: "target" }] }];
    cluster.api.put(path("inferencemodelrewrites"), { metadata: { name: "all" }, spec: { poolRef, rules } });
    await until("both", () => {
      const last = shown.at(-1);
      return last?.priorities["urgent"] === -1 && last.rewrites.targetOf("m", "") === "target";
    });
    cluster.api.delete(path("inferenceobjectives"), "urgent");
    await until("gone", () => Object.keys(shown.at(-1)!.priorities).length === 0);
    const other = await Cluster.start(t);
    await other.discover({ pods: { pool: "llama", version: "v1" } }, { setWorkloads: () => assert.fail() });
    await until("watching", () => other.api.watchers(POOLS) === 1);
    assert.ok(other.api.seen.every((one) => !one.includes("v1alpha2")));
  }
});

test("a recovery that brings no news is reported and counted, and the next blip does not wait long", async (t) => {
  const cluster = await Cluster.start(t);
  cluster.api.put(SLICES, slice("a", ["10.0.0.1", "p1"]));
  await cluster.discover();
  const row = () => cluster.board.rows().find(({ source }) => source === "endpointslices ns/vllm")!;
  for (const round of [1, 2]) {
    await until("watching", () => cluster.api.watchers(SLICES) === 1 && row().up);
    cluster.api.status = 500;
    cluster.api.hangUp(SLICES, false);
    const before = row().failures;
    await until("several failures", () => row().failures >= before + 3);
    assert.equal(row().up, false);
    cluster.api.status = undefined;
    await until("up again, quietly", () => row().up);
    assert.equal(row().recoveries, round);
  }
  assert.equal(row().lists, 1);
  assert.ok(row().newsAgeMicros >= 0);
  const about = cluster.events.filter(({ subject }) => subject === "endpointslices ns/vllm").map(({ kind }) => kind);
  assert.equal(about.at(-1), "source-recovered");
  assert.equal(about.filter((kind) => kind === "source-recovered").length, 2);
});

test("a watch asks to be ended before the client would cut it, and for bookmarks", async (t) => {
  const cluster = await Cluster.start(t);
  await cluster.discover();
  await until("watching", () => cluster.api.watchers(SLICES) === 1);
  const query = cluster.api.queries.find(({ path, watch }) => path === SLICES && watch)!;
  assert.equal(query.search.get("allowWatchBookmarks"), "true");
  const seconds = Number(query.search.get("timeoutSeconds"));
  assert.ok(seconds >= 20 && seconds <= 27, `${seconds} s`);
});

test("from the cluster to the router: a pod joins, is cordoned and leaves", async (t) => {
  const engine = await StubEngine.start();
  t.after(() => engine.kill());
  const fleet = new FleetUnderTest();
  t.after(() => fleet.keeper.stop());
  const cluster = await Cluster.start(t);
  cluster.api.put(SLICES, slice("a", ["127.0.0.1", "p1"]));
  await cluster.discover(
    { port: engine.port },
    { setTargets: (targets) => fleet.keeper.setTargets("kubernetes", targets) },
  );
  await until("joined", () => fleet.row(engine.url) !== undefined);
  cluster.api.put(SLICES, slice("a", ["127.0.0.1", "p1", { ready: false, terminating: true }]));
  await until("cordoned", () => fleet.row(engine.url)!.cordoned);
  cluster.api.delete(SLICES, "a");
  await until("left", () => fleet.row(engine.url) === undefined);
  assert.deepEqual(
    fleet.events.map(({ kind }) => kind),
    ["ready", "cordoned", "removed"],
  );
  assert.deepEqual(fleet.directory.all(), []);
});

test("events come whole however the connection cuts them, and an empty line is none", async (t) => {
  const cluster = await Cluster.start(t);
  await cluster.discover();
  await until("watching", () => cluster.api.watchers(SLICES) === 1);
  const object = slice("ü", ["10.0.0.1", "p1"]);
  const bytes = Buffer.from(`\n${JSON.stringify({ type: "ADDED", object })}\n\n`);
  for (const byte of bytes) {
    cluster.api.write(SLICES, Buffer.of(byte));
    await new Promise(setImmediate);
  }
  await cluster.becomes("http://10.0.0.1:8000");
  assert.equal(cluster.board.rows().find(({ source }) => source === "endpointslices ns/vllm")!.failures, 0);
});
