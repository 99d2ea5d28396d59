import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { once } from "node:events";
import { kubernetesApi } from "#live/discovery/kubernetes-api.ts";
import { followSelector } from "#live/discovery/pod-source.ts";
import { PodTargets } from "#live/discovery/pod-targets.ts";
import { SourceBoard } from "#live/endpoints/source-board.ts";

export const EMPTY_LIST = Buffer.from('{"metadata":{"resourceVersion":"1"},"items":[]}');
export const EMPTY_WATCH = Buffer.alloc(0);

export function podJson(i: number): string {
  const address = `10.${(i >> 16) & 255}.${(i >> 8) & 255}.${i & 255}`;
  return JSON.stringify({
    metadata: { name: `p${i}`, namespace: "n", uid: `u${i}`, labels: { app: "vllm" } },
    spec: { nodeName: "n", containers: [{ ports: [{ name: "http", containerPort: 8000 }] }] },
    status: {
      phase: "Running",
      podIP: address,
      podIPs: [{ ip: address }],
      conditions: [{ type: "Ready", status: "True" }],
    },
  });
}

/** Pods as an API server lists them, then as it reports their changes, up to the targets that they are. */
export async function readCollection(list: Buffer, events: Buffer): Promise<void> {
  let isRead = (): void => {};
  const read = new Promise<void>((resolve) => (isRead = resolve));
  let [lists, watches] = [0, 0];
  const server = createServer((request, answer) => {
    const isWatch = request.url?.includes("watch=true") === true;
    if (isWatch) watches++;
    else lists++;
    // It was read, or refused, where it is asked for again.
    if (lists > 1 || watches > 1) return isRead();
    answer.end(isWatch ? events : list);
    return undefined;
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const api = kubernetesApi({
    cluster: { server: `http://127.0.0.1:${(server.address() as AddressInfo).port}` },
    user: {},
  });
  const targets = new PodTargets({ addressFamily: "ipv4", setTargets: () => {}, report: () => {} });
  const source = followSelector(
    { api, times: { retryMillis: 1, retryMillisMax: 1 }, board: new SourceBoard(), report: () => {} },
    { namespace: "n", selector: "app=vllm" },
    { ports: undefined, portName: undefined, scheme: undefined },
    (pods) => targets.show(pods),
  );
  await read;
  server.closeAllConnections();
  server.close();
  await source.stop();
  await api.stop();
}
