import assert from "node:assert/strict";
import { existsSync, readFileSync, readdirSync } from "node:fs";
import { join, resolve } from "node:path";
import { test } from "node:test";
import { parseAllDocuments } from "yaml";
import { z } from "zod";
import { loadConfig } from "#config/load.ts";

const ROOT = resolve(import.meta.dirname, "../..");
const BASE = join(ROOT, "k8s/base");
const DEPLOY = join(ROOT, "deploy");

function documents(file: string): unknown[] {
  return parseAllDocuments(readFileSync(file, "utf8")).map((document) => {
    assert.deepEqual(document.errors, [], file);
    return document.toJS() as unknown;
  });
}

const manifest = z.looseObject({ kind: z.string(), metadata: z.looseObject({ name: z.string() }) });
const kustomization = z.looseObject({
  resources: z.array(z.string()),
  labels: z.tuple([
    z.object({ pairs: z.record(z.string(), z.string()), includeSelectors: z.boolean(), includeTemplates: z.boolean() }),
  ]),
  configMapGenerator: z.array(z.object({ name: z.string(), files: z.array(z.string()) })),
});
const rule = z.object({ apiGroups: z.array(z.string()), resources: z.array(z.string()), verbs: z.array(z.string()) });
const port = z.looseObject({ name: z.string(), containerPort: z.int() });
const probe = z.looseObject({ httpGet: z.object({ path: z.string(), port: z.string() }) });
const container = z.looseObject({
  args: z.array(z.string()),
  env: z.array(z.looseObject({ name: z.string() })),
  ports: z.array(port),
  startupProbe: probe,
  livenessProbe: probe,
  readinessProbe: probe,
  volumeMounts: z.array(z.looseObject({ name: z.string(), mountPath: z.string() })),
});
const deployment = z.looseObject({
  spec: z.looseObject({
    template: z.looseObject({
      metadata: z.looseObject({ annotations: z.record(z.string(), z.string()) }),
      spec: z.looseObject({
        serviceAccountName: z.string(),
        terminationGracePeriodSeconds: z.int(),
        containers: z.tuple([container]),
        volumes: z.array(z.looseObject({ name: z.string(), configMap: z.object({ name: z.string() }) })),
      }),
    }),
  }),
});

const index = kustomization.parse(documents(join(BASE, "kustomization.yaml"))[0]);
const manifests = index.resources.flatMap((file) => documents(join(BASE, file))).map((one) => manifest.parse(one));
const ofKind = (kind: string) => {
  const found = manifests.filter((one) => one.kind === kind);
  assert.equal(found.length, 1, kind);
  return found[0];
};
const pod = deployment.parse(ofKind("Deployment")).spec.template;
const [gateway] = pod.spec.containers;
const config = loadConfig({
  file: join(BASE, "config.yaml"),
  environment: Object.fromEntries(gateway.env.map(({ name }) => [name, "some-namespace"])),
  overrides: [],
});

test("the kustomization names every file of its folder, once", () => {
  const named = [...index.resources, ...index.configMapGenerator.flatMap(({ files }) => files), "kustomization.yaml"];
  assert.deepEqual(named.toSorted(), readdirSync(BASE).toSorted());
});

test("the ConfigMap's configuration is one, for a cluster, and the pod states where it looks", () => {
  const { kind, namespace, service, selector } = config.discovery;
  assert.deepEqual([kind, namespace, selector], ["kubernetes", "some-namespace", undefined]);
  assert.ok(service !== undefined);
  assert.equal(config.listen.host, "0.0.0.0", "probes come from outside of the pod");
  const [map] = index.configMapGenerator;
  const volume = pod.spec.volumes.find(({ configMap }) => configMap.name === map?.name);
  const mount = gateway.volumeMounts.find(({ name }) => name === volume?.name);
  assert.deepEqual(map?.files, ["config.yaml"]);
  assert.deepEqual(gateway.args, ["serve", "--config", `${mount?.mountPath}/config.yaml`]);
});

test("ports, probes and annotations meet what the gateway serves, and it has time to drain", () => {
  const http = gateway.ports.find(({ name }) => name === "http");
  assert.equal(http?.containerPort, config.listen.port);
  const paths = [gateway.startupProbe, gateway.livenessProbe, gateway.readinessProbe].map(({ httpGet }) => httpGet);
  assert.deepEqual(
    paths,
    ["/healthz", "/healthz", "/readyz"].map((path) => ({ path, port: "http" })),
  );
  const { annotations } = pod.metadata;
  assert.deepEqual(
    ["scrape", "port", "path"].map((name) => annotations[`prometheus.io/${name}`]),
    ["true", String(config.listen.port), "/metrics"],
  );
  const { drainNoticeMillis = 0, drainMillis } = config.listen;
  assert.ok(drainNoticeMillis >= 4000, "two failing probes, two seconds apart");
  assert.ok(pod.spec.terminationGracePeriodSeconds > (drainNoticeMillis + drainMillis) / 1000 + 5);
});

test("the service account may do what discovery does in its namespace, and no more", () => {
  const { rules } = z.looseObject({ rules: z.array(rule) }).parse(ofKind("Role"));
  const rights = rules.flatMap(({ apiGroups, resources, verbs }) =>
    apiGroups.flatMap((group) => resources.map((resource) => `${verbs.join("+")} ${group}/${resource}`)),
  );
  assert.deepEqual(rights.toSorted(), [
    "list+watch /pods",
    "list+watch /services",
    "list+watch discovery.k8s.io/endpointslices",
  ]);
  const binding = z
    .looseObject({
      roleRef: z.looseObject({ name: z.string() }),
      subjects: z.array(z.looseObject({ name: z.string() })),
    })
    .parse(ofKind("RoleBinding"));
  const account = ofKind("ServiceAccount")?.metadata.name;
  assert.equal(binding.roleRef.name, ofKind("Role")?.metadata.name);
  assert.deepEqual([binding.subjects[0]?.name, pod.spec.serviceAccountName], [account, account]);
});

test("the disruption budget is of the gateway's pods alone", () => {
  const { selector } = z
    .looseObject({ selector: z.object({ matchLabels: z.record(z.string(), z.string()) }) })
    .parse(ofKind("PodDisruptionBudget")?.["spec"]);
  assert.deepEqual(selector.matchLabels, index.labels[0].pairs);
  assert.ok(index.labels[0].includeSelectors && index.labels[0].includeTemplates);
});

const service = z.looseObject({
  command: z.array(z.string()).optional(),
  volumes: z.array(z.string()).optional(),
  build: z.object({ context: z.string(), dockerfile: z.string() }).optional(),
});

test("compose: the gateway's endpoints are the emulated engines", () => {
  const [compose] = documents(join(DEPLOY, "compose.yaml"));
  const { services } = z.looseObject({ services: z.record(z.string(), service) }).parse(compose);
  for (const { build } of Object.values(services)) {
    assert.ok(build === undefined || existsSync(join(DEPLOY, build.context, build.dockerfile)));
  }
  const command = services["engines"]?.command ?? [];
  const flag = (name: string) => command[command.indexOf(name) + 1];
  const [file = "", mounted] = services["gateway"]?.volumes?.[0]?.split(":") ?? [];
  assert.equal(services["gateway"]?.command?.at(-1), mounted);
  const { endpoints, listen } = loadConfig({ file: join(DEPLOY, file), environment: {}, overrides: [] });
  const first = Number(flag("--port-base"));
  assert.deepEqual(
    endpoints.map(({ url }) => url),
    Array.from({ length: Number(flag("--count")) }, (_, i) => `http://engines:${first + i}`),
  );
  assert.equal(listen.host, "0.0.0.0");
});

test("the image has what the program needs, and starts with a command that there is", () => {
  const dockerfile = readFileSync(join(DEPLOY, "Dockerfile"), "utf8");
  const sources = [...dockerfile.matchAll(/^COPY (?!--from)(.+) \S+$/gm)].flatMap(([, from]) => from!.split(" "));
  const allowed = readFileSync(join(DEPLOY, "Dockerfile.dockerignore"), "utf8").trim().split("\n");
  for (const source of sources) {
    assert.ok(existsSync(join(ROOT, source)), source);
    assert.ok(allowed.includes(`!${source}`), source);
  }
  const json = z.array(z.string());
  const line = (name: string) => json.parse(JSON.parse(new RegExp(`^${name} (.+)$`, "m").exec(dockerfile)?.[1] ?? ""));
  assert.ok(existsSync(join(ROOT, line("ENTRYPOINT")[1]!.replace(/^\/app\//, ""))));
  assert.deepEqual(line("CMD"), gateway.args);
  assert.match(dockerfile, /^USER 1000:1000$/m);
  assert.match(dockerfile, /^HEALTHCHECK /m);
});
