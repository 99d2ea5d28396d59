import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { basename, join, resolve } from "node:path";
import { test } from "node:test";
import { parse } from "yaml";
import { jobManifest } from "#cli/sweep/job-manifest.ts";
import { loadConfig } from "#config/load.ts";
import { CLUSTER_FOLDER, RealCluster } from "../live/discovery/real-cluster.ts";
import { charted, HELM, VALUES } from "./helm-chart.ts";
import { COMPONENTS, documentsOf, type Manifest, pairs, renderedEach } from "./manifest-components.ts";

const FOLDER = resolve(import.meta.dirname, "../../k8s");
const OVERLAYS = ["base", ...globSync("overlays/*", { cwd: FOLDER })].sort();
const CHART = join(FOLDER, "../deploy/helm");
/** Folder with the definitions of Gateway API, its inference extension and the Prometheus operator. */
const DEFINITIONS = process.env["TEST_CRDS"] ?? "";
/** Kinds of others, whose definitions a bare cluster does not have. */
const FOREIGN = new Set(["ServiceMonitor", "HTTPRoute", "InferencePool"]);

test("the image has a version and is taken as it was loaded, and every pod has an instance of its own", () => {
  const base = parse(readFileSync(join(FOLDER, "base/kustomization.yaml"), "utf8")) as {
    images: { newTag: string }[];
    labels: { pairs: Record<string, string>; includeSelectors: boolean }[];
  };
  const { version } = JSON.parse(readFileSync(join(FOLDER, "../package.json"), "utf8")) as { version: string };
  assert.deepEqual(base.images, [{ name: "gnomon", newTag: version }]);
  assert.ok(
    base.labels.every(({ pairs, includeSelectors }) => includeSelectors && "app.kubernetes.io/instance" in pairs),
  );
  const instances = globSync("overlays/two-models/*/kustomization.yaml", { cwd: FOLDER }).map((file) => {
    const text = readFileSync(join(FOLDER, file), "utf8");
    return /instance: (\S+)/.exec(text)?.[1];
  });
  assert.equal(new Set(instances).size, 2);
});

test("every configuration of the manifests is one that the gateway takes", () => {
  const files = globSync("**/config.yaml", { cwd: FOLDER });
  assert.ok(files.length >= 4);
  for (const file of files) loadConfig({ file: join(FOLDER, file), environment: {}, overrides: [] });
});

const skip = CLUSTER_FOLDER === "" ? "TEST_KUBE names no folder with a control plane" : false;

test(
  "a real API server takes every manifest strictly, and every pod where Pod Security is restricted",
  { skip },
  async (t) => {
    const cluster = new RealCluster();
    await cluster.start();
    t.after(() => cluster.stop());
    const labels = { "pod-security.kubernetes.io/enforce": "restricted" };
    cluster.apply({ apiVersion: "v1", kind: "Namespace", metadata: { name: "infer", labels } });
    cluster.apply({ apiVersion: "v1", kind: "Namespace", metadata: { name: "engines" } });
    if (DEFINITIONS !== "") cluster.define(DEFINITIONS);
    const check = (objects: readonly Manifest[], name: string): void => {
      const known = objects.filter(({ kind }) => !FOREIGN.has(kind) || DEFINITIONS !== "");
      const pods = known.flatMap(({ spec }, i) => {
        if (spec?.template === undefined) return [];
        const { serviceAccountName: _, ...pod } = spec.template.spec;
        return [
          { apiVersion: "v1", kind: "Pod", metadata: { ...spec.template.metadata, name: `${name}-${i}` }, spec: pod },
        ];
      });
      cluster.create([...known, ...pods]);
    };
    for (const overlay of OVERLAYS)
      check(documentsOf(cluster.kubectl("kustomize", join(FOLDER, overlay))), basename(overlay));
    const kubectl = join(CLUSTER_FOLDER, "bin/kubectl");
    const lists = [...COMPONENTS.map((name) => [name]), ...pairs()];
    for (const [i, manifests] of renderedEach(kubectl, lists).entries()) check(manifests, lists[i]!.join("-"));
    if (HELM !== "") for (const [name, values] of VALUES) check(charted(CHART, values), name);
    const ran = { name: "sweep", image: "gnomon:0.1.0", claim: "sweep", file: "sweep.yaml", parts: "parts" };
    check([parse(jobManifest({ ...ran, shards: 64, parallelism: 8, cpus: 2 })) as Manifest], "sweep");
  },
);
