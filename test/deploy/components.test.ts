import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { test } from "node:test";
import { parse } from "yaml";
import { loadConfig } from "#config/load.ts";
import { CLUSTER_FOLDER } from "../live/discovery/real-cluster.ts";
import { COMPONENTS, pairs, renderedBeside, renderedEach } from "./manifest-components.ts";

const FOLDER = resolve(import.meta.dirname, "../../k8s");
/** What TEST_KUBE has, else the one on this machine: rendering needs no cluster. */
const KUBECTL = CLUSTER_FOLDER === "" ? "kubectl" : join(CLUSTER_FOLDER, "bin/kubectl");
const isThere = spawnSync(KUBECTL, ["kustomize", "--help"]).status === 0;
const skip = isThere ? false : "there is no kubectl, neither here nor where TEST_KUBE points";

interface Component {
  readonly apiVersion: string;
  readonly kind: string;
  readonly resources?: readonly string[];
  readonly patches?: readonly { readonly patch: string }[];
  readonly configMapGenerator?: readonly { readonly files: readonly string[] }[];
}

interface Patch {
  readonly kind: string;
  readonly metadata: { readonly name: string };
  readonly spec?: unknown;
}

const components = COMPONENTS.map((name) => {
  const folder = join(FOLDER, "components", name);
  return { name, folder, ...(parse(readFileSync(join(folder, "kustomization.yaml"), "utf8")) as Component) };
});
const patchesOf = ({ patches = [] }: Component): Patch[] => patches.map(({ patch }) => parse(patch) as Patch);

/** Values by their path; elements of a list by their name, as Kubernetes merges them. */
function leaves(value: unknown, path = ""): [string, unknown][] {
  if (Array.isArray(value)) {
    return value.flatMap((one: unknown, i) => {
      const { name, port, mountPath } = (one ?? {}) as { name?: string; port?: number; mountPath?: string };
      return leaves(one, `${path}[${mountPath ?? name ?? port ?? i}]`);
    });
  }
  if (typeof value === "object" && value !== null)
    return Object.entries(value).flatMap(([key, one]) => leaves(one, `${path}.${key}`));
  return [[path, value]];
}

test("every component is one, adds files that it has, and changes nothing but what the base has", () => {
  assert.ok(components.length >= 10);
  const base = new Set(["Deployment gnomon", "Service gnomon", "Role gnomon", "RoleBinding gnomon"]);
  for (const component of components) {
    assert.equal(`${component.kind} ${component.apiVersion}`, "Component kustomize.config.k8s.io/v1alpha1");
    for (const file of component.resources ?? []) assert.ok(existsSync(join(component.folder, file)), file);
    for (const { kind, metadata } of patchesOf(component)) assert.ok(base.has(`${kind} ${metadata.name}`));
    const variables = patchesOf(component).flatMap((patch) =>
      leaves(patch).flatMap(([path, value]) => {
        const name = /\.env\[(GNOMON_[A-Z_]+)\]\.value$/.exec(path)?.[1];
        return name === undefined ? [] : [[name, String(value)] as const];
      }),
    );
    // Of a variable that names another one, the other has its value from a secret.
    const secrets = { ADMIN_TOKEN: "a".repeat(32), HASH_KEY: "b".repeat(32), CLIENT_KEYS: "c=d" };
    loadConfig({ file: undefined, environment: { ...secrets, ...Object.fromEntries(variables) }, overrides: [] });
  }
});

test("no two components that combine give one field two values", () => {
  for (const [one, other] of pairs()) {
    const [a, b] = [one, other].map((name) => components.find((component) => component.name === name)!);
    const valuesOf = (component: Component) =>
      new Map(patchesOf(component).flatMap(({ kind, metadata, ...rest }) => leaves(rest, `${kind} ${metadata.name}`)));
    const [first, second] = [valuesOf(a!), valuesOf(b!)];
    for (const [path, value] of second) {
      if (first.has(path)) assert.deepEqual(value, first.get(path), `${one} and ${other}: ${path}`);
    }
    const both = [a!, b!].filter(({ configMapGenerator = [] }) => configMapGenerator.length > 0);
    assert.ok(both.length < 2, `${one} and ${other} each bring a configuration`);
  }
});

test("every pair renders, to the same whatever the order", { skip }, () => {
  const known = new Map<string, string>();
  const all = pairs();
  const linesOf = renderedEach(KUBECTL, [...all, ...all.map((pair) => pair.toReversed())]).map((manifests) => {
    const lines = manifests.flatMap((manifest) => leaves(manifest, manifest.metadata.name));
    return lines.map(([path, value]) => `${path}=${String(value)}`).toSorted();
  });
  for (const [i, pair] of all.entries()) {
    const [one, other] = [linesOf[i]!, linesOf[all.length + i]!];
    assert.ok(one.length > 50, pair.join());
    assert.deepEqual(one, other, pair.join());
    known.set(pair.join(), JSON.stringify(one));
  }
  assert.equal(new Set(known.values()).size, known.size, "each pair differs from every other one");
});

test("beside another gateway in its namespace, each component speaks of its own", { skip }, () => {
  const all = COMPONENTS.filter((name) => name !== "static");
  const lines = renderedBeside(KUBECTL, all, "llama").flatMap(({ kind, metadata, spec }) =>
    leaves(spec, `${kind} ${metadata.name}`).map(([path, value]) => `${path}=${String(value)}`),
  );
  for (const line of [
    "HTTPRoute llama-gnomon.rules[0].backendRefs[llama-gnomon].name=llama-gnomon",
    "HTTPRoute llama-vllm.rules[0].backendRefs[llama-vllm].name=llama-vllm",
    "InferencePool llama-vllm.endpointPickerRef.name=llama-gnomon",
    "HorizontalPodAutoscaler llama-gnomon.scaleTargetRef.name=llama-gnomon",
    "ServiceMonitor llama-gnomon.selector.matchLabels.app.kubernetes.io/instance=llama",
    "NetworkPolicy llama-gnomon.podSelector.matchLabels.app.kubernetes.io/instance=llama",
  ])
    assert.ok(lines.includes(line), line);
  const others = lines.filter((line) => /instance=(?!llama$)/.test(line));
  assert.deepEqual(others, []);
});
