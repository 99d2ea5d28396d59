import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { discoverKubernetes } from "#live/discovery/kubernetes.ts";
import type { KeeperEvent } from "#live/endpoints/keeper-event.ts";
import { SourceBoard } from "#live/endpoints/source-board.ts";
import type { SourceRow } from "#live/endpoints/source-status.ts";
import type { Target } from "#live/endpoints/target.ts";
import { CLUSTER_FOLDER, RealCluster } from "./real-cluster.ts";

const skip = CLUSTER_FOLDER === "" ? "TEST_KUBE names no folder with a control plane" : false;
const RBAC = join(import.meta.dirname, "../../../k8s/base/rbac.yaml");
const BOTH = (n: number): string[] => [`10.77.1.${n}`, `fd77::${n}`];
/** Of pods whose first address is the other one. */
const SWAPPED = (n: number): string[] => BOTH(n).toReversed();

test("discovery against a real API server", { skip, timeout: 280_000 }, async (t) => {
  const cluster = new RealCluster();
  await cluster.start();
  t.after(() => cluster.stop());
  cluster.apply({ apiVersion: "v1", kind: "Namespace", metadata: { name: "infer" } });
  cluster.apply({ apiVersion: "v1", kind: "Node", metadata: { name: "node-1" } });
  cluster.kubectl("apply", "-n", "infer", "-f", RBAC);
  cluster.apply({
    apiVersion: "v1",
    kind: "Service",
    metadata: { name: "vllm", namespace: "infer" },
    spec: { ipFamilyPolicy: "RequireDualStack", selector: { app: "vllm" }, ports: [{ port: 80, targetPort: "http" }] },
  });

  let targets: readonly Target[] = [];
  const events: KeeperEvent[] = [];
  const board = new SourceBoard();
  const discovery = await discoverKubernetes({
    sources: [{ namespace: "infer", pods: { service: "vllm" } }],
    setTargets: (now) => (targets = now),
    report: (event) => events.push(event),
    board,
    kubeContext: cluster.contextOf("gnomon"),
    retryMillis: 100,
    retryMillisMax: 1_000,
  });
  t.after(() => discovery.stop());
  const now = () => targets.map(({ id, cordoned }) => (cordoned ? `[${id}]` : id)).join();
  const becomes = (what: string, ids: string) => until(`${what}: ${ids} (is ${now()})`, () => now() === ids);
  const row = (kind: string) => board.rows().find(({ source }) => source === `${kind} infer/vllm`)!;
  const labels = { app: "vllm", role: "decode" };

  await t.test("a pod of both families comes as one endpoint, with its labels, once it is ready", async () => {
    cluster.pod("a", BOTH(11), labels, false);
    await until("followed", () => row("services").up && row("pods").up && row("endpointslices").up);
    assert.equal(now(), "");
    cluster.ready("a", BOTH(11), true);
    await becomes("ready", "http://10.77.1.11:8000");
    await until("labels", () => targets[0]!.labels["role"] === "decode");
  });

  await t.test("a second one comes, turns unready, ready again, terminates and goes", async () => {
    cluster.pod("b", SWAPPED(12), labels, true);
    await becomes("both", "http://10.77.1.11:8000,http://10.77.1.12:8000");
    cluster.ready("b", SWAPPED(12), false);
    await becomes("unready", "http://10.77.1.11:8000,[http://10.77.1.12:8000]");
    cluster.ready("b", SWAPPED(12), true);
    await becomes("ready again", "http://10.77.1.11:8000,http://10.77.1.12:8000");
    cluster.kubectl("delete", "pod", "b", "-n", "infer", "--wait=false");
    await becomes("terminating", "http://10.77.1.11:8000,[http://10.77.1.12:8000]");
    cluster.kubectl("delete", "pod", "b", "-n", "infer", "--grace-period=0", "--force");
    await becomes("gone", "http://10.77.1.11:8000");
  });

  await t.test("rights that are taken away are reported by name, lose nothing, and come back", async () => {
    cluster.kubectl("delete", "role", "gnomon", "-n", "infer");
    await cluster.restartServer();
    const denied = /^(?:list|watch) endpointslices\.discovery\.k8s\.io in namespace infer: status 403: /;
    await until("denied", () => events.some(({ detail }) => denied.test(detail)));
    assert.equal(row("endpointslices").up, false);
    assert.equal(now(), "http://10.77.1.11:8000");
    cluster.kubectl("apply", "-n", "infer", "-f", RBAC);
    await until("all up", () => board.rows().every(({ up }) => up));
    cluster.pod("c", BOTH(13), labels, true);
    await becomes("followed again", "http://10.77.1.11:8000,http://10.77.1.13:8000");
    await until("labels as well", () => targets.every((target) => target.labels["role"] === "decode"));
  });

  await t.test("a restart of the API server is outlived, and what happened meanwhile arrives", async () => {
    const { recoveries } = row("endpointslices");
    await cluster.restartServer();
    cluster.kubectl("delete", "pod", "c", "-n", "infer", "--grace-period=0", "--force");
    await becomes("the change", "http://10.77.1.11:8000");
    await until("all up", () => board.rows().every(({ up }) => up));
    assert.ok(row("endpointslices").recoveries > recoveries);
  });

  await t.test("a quiet watch is ended by the server and goes on without a list, however long", async (subtest) => {
    const churn = setInterval(() => cluster.kubectl("create", "configmap", `x${Date.now()}`, "-n", "infer"), 1_000);
    subtest.after(() => clearInterval(churn));
    const moreWatches = async (rows: readonly SourceRow[], count: number): Promise<readonly SourceRow[]> => {
      const now = () => rows.map(({ source }) => board.rows().find((row) => row.source === source)!);
      await until(`${count} more`, () => now().every(({ watches }, i) => watches >= rows[i]!.watches + count), 110_000);
      return now();
    };
    // The first one after a restart may begin at a version that the server has not kept: it opens, and then ends with an error.
    const before = await moreWatches(board.rows(), 1);
    const after = await moreWatches(before, 2);
    assert.deepEqual(
      after.map(({ source, lists, failures }) => ({ source, lists, failures })),
      before.map(({ source, lists, failures }) => ({ source, lists, failures })),
    );
  });
});

async function until(what: string, holds: () => boolean, millisMax = 40_000): Promise<void> {
  const deadline = performance.now() + millisMax;
  while (!holds()) {
    if (performance.now() > deadline) throw new Error(`never happened: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}
