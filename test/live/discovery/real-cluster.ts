import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:net";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { KubeContext } from "#live/discovery/kubeconfig.ts";
import { freePort } from "../../../bench/free-port.ts";

/** Folder with up.sh and bin/kubectl of a control plane that can be started without a container engine. */
export const CLUSTER_FOLDER = process.env["TEST_KUBE"] ?? "";

const UP = join(CLUSTER_FOLDER, "up.sh");
const DOWN_MILLIS = 500;

/** A real API server with its controllers and no kubelet: pods' states are written by hand. */
export class RealCluster {
  /** With admin.kubeconfig and its certificates. */
  readonly folder = mkdtempSync(join(tmpdir(), "gnomon-cluster-"));
  #port = 0;
  #env: NodeJS.ProcessEnv = {};

  /** Once it has started. */
  get port(): number {
    return this.#port;
  }

  async start(): Promise<void> {
    this.#port = await freePort();
    const etcdPort = await freePair();
    this.#env = { ...process.env, DIR: this.folder, PORT: String(this.#port), ETCD_PORT: String(etcdPort) };
    execFileSync(UP, { cwd: CLUSTER_FOLDER, env: this.#env, stdio: "ignore" });
  }

  stop(): void {
    for (const name of ["kube-controller-manager", "kube-apiserver", "etcd"])
      process.kill(this.#pidOf(name), "SIGKILL");
    rmSync(this.folder, { recursive: true, force: true });
  }

  /** Kills the API server alone and begins it again on the same data, with a window in which nobody listens. */
  async restartServer(): Promise<void> {
    process.kill(this.#pidOf("kube-apiserver"), "SIGKILL");
    await new Promise((resolve) => setTimeout(resolve, DOWN_MILLIS));
    const up = spawn(UP, { cwd: CLUSTER_FOLDER, env: { ...this.#env, RESTART: "1" }, stdio: "ignore" });
    await once(up, "exit");
  }

  kubectl(...argv: string[]): string {
    return this.#kubectl(argv, undefined);
  }

  apply(manifest: object): void {
    this.#kubectl(["apply", "-f", "-"], JSON.stringify(manifest));
  }

  /** Installs definitions of kinds, and waits until the server has them. */
  define(folder: string): void {
    this.kubectl("apply", "--server-side", "-f", folder);
    this.kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=30s");
  }

  /** Asks the server whether it would take objects, of namespace infer if of no other, with no field that it does not know. */
  create(objects: readonly { readonly metadata: object }[]): void {
    const items = objects.map((one) => ({ ...one, metadata: { namespace: "infer", ...one.metadata } }));
    const argv = ["create", "--dry-run=server", "--validate=strict", "-f", "-"];
    this.#kubectl(argv, JSON.stringify({ apiVersion: "v1", kind: "List", items }));
  }

  /** A pod of a node, with addresses and a state that a kubelet would have written. */
  pod(name: string, addresses: readonly string[], labels: Record<string, string>, ready: boolean): void {
    this.apply({
      apiVersion: "v1",
      kind: "Pod",
      metadata: { name, namespace: "infer", labels },
      spec: {
        nodeName: "node-1",
        terminationGracePeriodSeconds: 120,
        containers: [{ name: "vllm", image: "vllm", ports: [{ name: "http", containerPort: 8000 }] }],
      },
    });
    this.ready(name, addresses, ready);
  }

  ready(name: string, addresses: readonly string[], ready: boolean): void {
    const condition = { type: "Ready", status: ready ? "True" : "False", lastTransitionTime: new Date().toISOString() };
    const podIPs = addresses.map((ip) => ({ ip }));
    const status = { phase: "Running", podIP: addresses[0], podIPs, conditions: [condition] };
    const patch = JSON.stringify({ status });
    this.kubectl("patch", "pod", name, "-n", "infer", "--subresource=status", "--type=merge", "-p", patch);
  }

  /** What a service account of the cluster may do, as a pod's own credential would be. */
  contextOf(account: string): KubeContext {
    const token = this.kubectl("create", "token", account, "-n", "infer", "--duration=1h").trim();
    const cluster = { server: `https://127.0.0.1:${this.#port}`, "certificate-authority": join(this.folder, "ca.crt") };
    return { cluster, user: { token } };
  }

  #pidOf(name: string): number {
    return Number(readFileSync(join(this.folder, `${name}.pid`), "utf8"));
  }

  #kubectl(argv: readonly string[], input: string | undefined): string {
    const config = join(this.folder, "admin.kubeconfig");
    const kubectl = join(CLUSTER_FOLDER, "bin/kubectl");
    return execFileSync(kubectl, ["--kubeconfig", config, ...argv], {
      encoding: "utf8",
      stdio: ["pipe", "pipe", "pipe"],
      ...(input !== undefined && { input }),
    });
  }
}

/** The lower one of two ports in a row, for etcd's clients and peers. */
async function freePair(): Promise<number> {
  for (;;) {
    const port = await freePort();
    const next = createServer();
    const isFree = new Promise<boolean>((resolve) => {
      next.once("listening", () => next.close(() => resolve(true))).once("error", () => resolve(false));
    });
    next.listen(port + 1, "127.0.0.1");
    if (await isFree) return port;
  }
}
