import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { stringify } from "yaml";

const POD_VERBS = ["list", "watch", "get"];
const RESOURCES = [{ name: "pods", singularName: "pod", namespaced: true, kind: "Pod", verbs: POD_VERBS }];

const INITIAL_END = {
  type: "BOOKMARK",
  object: {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { resourceVersion: "1", annotations: { "k8s.io/initial-events-end": "true" } },
  },
};

/** As much of a control plane as a picker in standalone mode reads: the engines' pods. Its kubeconfig is `file`. */
export async function startPodList(
  scratch: string,
  addresses: readonly string[],
): Promise<{ readonly file: string; readonly close: () => void }> {
  const items = addresses.map((podIP, i) => ({
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name: `engine-${i}`, namespace: "sample", uid: `u${i}`, resourceVersion: "1", labels: { app: "vllm" } },
    spec: { containers: [{ name: "vllm" }] },
    status: { phase: "Running", podIP, conditions: [{ type: "Ready", status: "True" }] },
  }));
  const groups = { kind: "APIGroupList", apiVersion: "v1", groups: [] };
  const pages: Readonly<Record<string, object>> = {
    "/api": { kind: "APIVersions", versions: ["v1"] },
    "/apis": groups,
    "/api/v1": { kind: "APIResourceList", groupVersion: "v1", resources: RESOURCES },
    "/version": { major: "1", minor: "34", gitVersion: "v1.34.0" },
  };
  const list = { kind: "PodList", apiVersion: "v1", metadata: { resourceVersion: "1" }, items };
  const server = createServer((request, response) => {
    const { pathname, searchParams } = new URL(request.url!, "http://localhost");
    response.setHeader("content-type", "application/json");
    if (pathname.endsWith("/pods")) {
      if (!searchParams.has("watch")) return void response.end(JSON.stringify(list));
      // It stays open behind what is there, and nothing ever happens.
      response.flushHeaders();
      if (searchParams.get("sendInitialEvents") === "true") {
        for (const object of [...items.map((pod) => ({ type: "ADDED", object: pod })), INITIAL_END]) {
          response.write(`${JSON.stringify(object)}\n`);
        }
      }
      return;
    }
    const page = pages[pathname];
    response.writeHead(page === undefined ? 404 : 200).end(JSON.stringify(page ?? { kind: "Status", code: 404 }));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const named = (name: string, value: object): object => ({ name, ...value });
  const file = join(scratch, "kubeconfig");
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  writeFileSync(
    file,
    stringify({
      apiVersion: "v1",
      kind: "Config",
      clusters: [named("c", { cluster: { server: url } })],
      users: [named("u", { user: {} })],
      contexts: [named("c", { context: { cluster: "c", user: "u", namespace: "sample" } })],
      "current-context": "c",
    }),
  );
  const close = (): void => {
    server.closeAllConnections();
    server.close();
  };
  return { file, close };
}
