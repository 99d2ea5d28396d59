import { type ChildProcess, spawn } from "node:child_process";
import { closeSync, mkdirSync, openSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer, type Socket, connect } from "node:net";
import { join } from "node:path";
import type { ClusterClient } from "./cluster-client.ts";
import type { Container, EndpointSlice, Pod, Service, Variable, Volume } from "./pod-objects.ts";
import { passes } from "./probe.ts";

const NODE = "node-1";
/** Each pod's process sees its own credential there, in a mount namespace of its own. */
const CREDENTIAL = "/run/secrets/kubernetes.io/serviceaccount";
const WITH_CREDENTIAL = `mkdir -p ${CREDENTIAL}; mount --bind "$0" ${CREDENTIAL}; exec "$@"`;
const TURN_MILLIS = 250;

export interface KubeletOptions {
  readonly client: ClusterClient;
  readonly namespaces: readonly string[];
  readonly apiServerPort: number;
  /** For logs and mounted volumes. */
  readonly folder: string;
  /** The program and its first arguments that stand for an image; undefined: its pods stay pending. */
  readonly entrypointOf: (image: string) => readonly string[] | undefined;
  readonly addressesOfPods: readonly string[];
  readonly addressesOfServices: readonly string[];
}

interface Running {
  readonly pod: Pod;
  readonly child: ChildProcess;
  readonly address: string;
  ready: boolean;
  ending: boolean;
}

/**
 * What scheduler, kubelet, cluster DNS and kube-proxy do, as far as a walk needs them: pods are bound to one node, and each
 * container is a process with its rendered command, variables, files and credential; its readiness probe is asked, and the
 * rest of the cluster (deployments, replica sets, endpoint slices) is the real one's. In a private network: in place of a
 * network of its own, a pod has an address on the loopback device, which its 0.0.0.0 becomes.
 */
export class HandKubelet {
  readonly #options: KubeletOptions;
  readonly #running = new Map<string, Running>();
  readonly #services = new Map<string, ServiceForward>();
  #addressesUsed = 0;
  #going = true;
  #loop: Promise<void> = Promise.resolve();
  /** Of each pod that was started, its command as it ran. */
  readonly commands: string[] = [];

  constructor(options: KubeletOptions) {
    this.#options = options;
  }

  async start(): Promise<void> {
    const node = { apiVersion: "v1", kind: "Node", metadata: { name: NODE } };
    await this.#options.client.ask("POST", "/api/v1/nodes", node).catch(() => undefined);
    this.#loop = this.#turns();
  }

  async stop(): Promise<void> {
    this.#going = false;
    await this.#loop;
    for (const { child } of this.#running.values()) child.kill("SIGKILL");
    for (const service of this.#services.values()) service.close();
  }

  /** Addresses of the ready pods with these labels. */
  readyPods(labels: Readonly<Record<string, string>>): string[] {
    const has = ({ metadata }: Pod): boolean =>
      Object.entries(labels).every(([name, value]) => metadata.labels?.[name] === value);
    return [...this.#running.values()].filter(({ pod, ready }) => ready && has(pod)).map(({ address }) => address);
  }

  async #turns(): Promise<void> {
    while (this.#going) {
      try {
        for (const namespace of this.#options.namespaces) await this.#turn(namespace);
      } catch (error) {
        // A change that met another one; the next turn sees what came of it.
        if (!/: (?:404|409) /.test(String(error))) process.stderr.write(`${String(error)}\n`);
      }
      await new Promise((resolve) => setTimeout(resolve, TURN_MILLIS));
    }
  }

  async #turn(namespace: string): Promise<void> {
    const pods = await this.#options.client.list<Pod>(`/api/v1/namespaces/${namespace}/pods`);
    for (const pod of pods) await this.#care(pod);
    await this.#forwardServices(namespace);
  }

  async #care(pod: Pod): Promise<void> {
    const { client, entrypointOf } = this.#options;
    const path = pathOf(pod);
    const running = this.#running.get(pod.metadata.uid);
    if (pod.metadata.deletionTimestamp !== undefined) return this.#end(pod, running);
    const [container] = pod.spec.containers;
    const entrypoint = entrypointOf(container!.image);
    if (entrypoint === undefined) return;
    if (pod.spec.nodeName === undefined) {
      const target = { apiVersion: "v1", kind: "Node", name: NODE };
      const metadata = { name: pod.metadata.name };
      await client.ask("POST", `${path}/binding`, { apiVersion: "v1", kind: "Binding", metadata, target });
    } else if (running === undefined) await this.#run(pod, container!, entrypoint);
    else if (running.child.exitCode !== null) throw new Error(`${pod.metadata.name} ended: ${this.#logOf(pod)}`);
    else await this.#probe(running, container!);
  }

  async #probe(running: Running, container: Container): Promise<void> {
    const probe = container.readinessProbe;
    const ready = probe === undefined || (await passes(probe, container, running.address));
    if (ready === running.ready) return;
    await this.#state(running.pod, running.address, ready);
    running.ready = ready;
  }

  async #end(pod: Pod, running: Running | undefined): Promise<void> {
    if (running === undefined || running.child.exitCode !== null || running.child.signalCode !== null) {
      this.#running.delete(pod.metadata.uid);
      await this.#options.client.ask("DELETE", `${pathOf(pod)}?gracePeriodSeconds=0`);
    } else if (!running.ending) {
      running.ending = true;
      running.child.kill("SIGTERM");
    }
  }

  async #run(pod: Pod, container: Container, entrypoint: readonly string[]): Promise<void> {
    const address = this.#options.addressesOfPods[this.#addressesUsed++ % this.#options.addressesOfPods.length]!;
    const folder = join(this.#options.folder, pod.metadata.name);
    mkdirSync(folder, { recursive: true });
    const mounted = await this.#mount(pod, container, folder);
    const env = await this.#variables(pod, container, address);
    const here = (text: string): string => {
      let placed = text.replaceAll("0.0.0.0", address);
      for (const [from, to] of mounted) placed = placed.replaceAll(from, to);
      return placed.replaceAll(/\$\((\w+)\)/g, (whole, name: string) => env[name] ?? whole);
    };
    for (const [, place] of mounted)
      for (const file of readdirSync(place).map((name) => join(place, name)))
        writeFileSync(file, here(readFileSync(file, "utf8")));
    const credential = await this.#credential(pod, folder);
    const [image = "", ...first] = container.command === undefined ? entrypoint : commandOf(container, entrypoint);
    const words = [...first, ...(container.args ?? [])].map((word) => here(word));
    this.commands.push([image, ...words].join(" "));
    // A file, which a container may open by its name as it can in a cluster.
    const log = openSync(this.#logFile(pod), "a");
    const argv = ["--mount", "sh", "-euc", WITH_CREDENTIAL, credential, image, ...words];
    const child = spawn("unshare", argv, { env, cwd: folder, stdio: ["ignore", log, log] });
    closeSync(log);
    this.#running.set(pod.metadata.uid, { pod, child, address, ready: false, ending: false });
    await this.#state(pod, address, false);
  }

  /** Files of config maps and secrets; paths in the pod by where they are here. */
  async #mount(pod: Pod, container: Container, folder: string): Promise<[string, string][]> {
    const mounted: [string, string][] = [];
    for (const { name, mountPath } of container.volumeMounts ?? []) {
      const place = join(folder, name);
      mkdirSync(place, { recursive: true });
      const volume = pod.spec.volumes!.find((one) => one.name === name)!;
      for (const [file, content] of await this.#files(pod, volume)) writeFileSync(join(place, file), content);
      mounted.push([mountPath, place]);
    }
    return mounted;
  }

  async #files(pod: Pod, { configMap, secret }: Volume): Promise<[string, string | Buffer][]> {
    const { client } = this.#options;
    const at = `/api/v1/namespaces/${pod.metadata.namespace}`;
    if (configMap !== undefined) {
      const map = await client.ask<{ data?: Record<string, string> }>("GET", `${at}/configmaps/${configMap.name}`);
      return Object.entries(map?.data ?? {});
    }
    if (secret === undefined) return [];
    const held = await client.ask<{ data?: Record<string, string> }>("GET", `${at}/secrets/${secret.secretName}`);
    return Object.entries(held?.data ?? {}).map(([name, text]) => [name, Buffer.from(text, "base64")]);
  }

  async #variables(pod: Pod, container: Container, address: string): Promise<NodeJS.ProcessEnv> {
    const env: NodeJS.ProcessEnv = {
      PATH: process.env["PATH"],
      NODE_ENV: "production",
      // On the loopback address, which in a network of its own no other pod would have.
      GNOMON_LISTEN_ADMIN_PORT: "0",
      KUBERNETES_SERVICE_HOST: "127.0.0.1",
      KUBERNETES_SERVICE_PORT: String(this.#options.apiServerPort),
    };
    for (const variable of container.env ?? []) env[variable.name] = await this.#valueOf(pod, variable, address);
    return env;
  }

  async #valueOf(pod: Pod, { value, valueFrom }: Variable, address: string): Promise<string> {
    if (valueFrom?.secretKeyRef !== undefined) {
      const { name, key } = valueFrom.secretKeyRef;
      const path = `/api/v1/namespaces/${pod.metadata.namespace}/secrets/${name}`;
      const secret = await this.#options.client.ask<{ data: Record<string, string> }>("GET", path);
      return Buffer.from(secret!.data[key]!, "base64").toString();
    }
    const field = valueFrom?.fieldRef?.fieldPath;
    if (field === "metadata.namespace") return pod.metadata.namespace;
    if (field === "metadata.name") return pod.metadata.name;
    if (field === "status.podIP") return address;
    if (field !== undefined && /^metadata\.(?:annotations|labels)/.test(field)) return "";
    if (field !== undefined) throw new Error(`${field} is not known`);
    return value ?? "";
  }

  /** A folder with the credential of the pod's service account; an empty one where it has none. */
  async #credential({ metadata: { namespace }, spec }: Pod, folder: string): Promise<string> {
    const place = join(folder, "credential");
    mkdirSync(place);
    if (spec.automountServiceAccountToken === false) return place;
    const path = `/api/v1/namespaces/${namespace}/serviceaccounts/${spec.serviceAccountName ?? "default"}/token`;
    const asked = { apiVersion: "authentication.k8s.io/v1", kind: "TokenRequest", spec: { expirationSeconds: 3600 } };
    const given = await this.#options.client.ask<{ status: { token: string } }>("POST", path, asked);
    const map = `/api/v1/namespaces/${namespace}/configmaps/kube-root-ca.crt`;
    const ca = await this.#options.client.ask<{ data: Record<string, string> }>("GET", map);
    writeFileSync(join(place, "token"), given!.status.token);
    writeFileSync(join(place, "ca.crt"), ca!.data["ca.crt"]!);
    writeFileSync(join(place, "namespace"), namespace);
    return place;
  }

  async #state(pod: Pod, address: string, ready: boolean): Promise<void> {
    const at = new Date().toISOString();
    const status = ready ? "True" : "False";
    const conditions = ["Ready", "ContainersReady", "PodScheduled", "Initialized"].map((type) => ({
      type,
      status: type.endsWith("Ready") ? status : "True",
      lastTransitionTime: at,
    }));
    await this.#options.client.merge(`${pathOf(pod)}/status`, {
      status: { phase: "Running", podIP: address, podIPs: [{ ip: address }], conditions, startTime: at },
    });
  }

  async #forwardServices(namespace: string): Promise<void> {
    const { client, addressesOfServices } = this.#options;
    const services = await client.list<Service>(`/api/v1/namespaces/${namespace}/services`);
    const slices = await client.list<EndpointSlice>(`/apis/discovery.k8s.io/v1/namespaces/${namespace}/endpointslices`);
    for (const { metadata, spec } of services) {
      if (spec.selector === undefined) continue;
      const key = `${namespace}/${metadata.name}`;
      let forward = this.#services.get(key);
      if (forward === undefined) {
        const address = addressesOfServices[this.#services.size]!;
        forward = new ServiceForward(address, spec.ports ?? []);
        this.#services.set(key, forward);
        writeNames(address, metadata);
      }
      const its = slices.filter(({ metadata: { labels } }) => labels?.["kubernetes.io/service-name"] === metadata.name);
      forward.backends = its;
    }
  }

  #logFile(pod: Pod): string {
    return join(this.#options.folder, `${pod.metadata.name}.log`);
  }

  #logOf(pod: Pod): string {
    return readFileSync(this.#logFile(pod), "utf8").slice(-2_000);
  }
}

function pathOf({ metadata: { namespace, name } }: Pod): string {
  return `/api/v1/namespaces/${namespace}/pods/${name}`;
}

/** What a manifest names by the image's own paths is here where the entrypoint is. */
function commandOf({ command = [] }: Container, entrypoint: readonly string[]): string[] {
  const [node = "", script = ""] = entrypoint;
  return command.map((word) =>
    word === "envoy" || word.endsWith("/bin/node") ? node : word.endsWith("bin/gnomon.js") ? script : word,
  );
}

function writeNames(address: string, { name, namespace }: Service["metadata"]): void {
  const names = [name, `${name}.${namespace}`, `${name}.${namespace}.svc`, `${name}.${namespace}.svc.cluster.local`];
  writeFileSync("/etc/hosts", `${readFileSync("/etc/hosts", "utf8")}${address} ${names.join(" ")}\n`);
}

/** A service's ports, each connection to the next of its ready pods. */
class ServiceForward {
  backends: readonly EndpointSlice[] = [];
  readonly #servers;
  #next = 0;

  constructor(address: string, ports: NonNullable<Service["spec"]["ports"]>) {
    this.#servers = ports.map(({ name, port }) =>
      createServer((client) => this.#forward(client, name)).listen(port, address),
    );
  }

  close(): void {
    for (const server of this.#servers) server.close();
  }

  #forward(client: Socket, portName: string | undefined): void {
    const targets = this.backends.flatMap(({ ports, endpoints }) => {
      const port = ports?.find(({ name = "" }) => name === (portName ?? ""))?.port;
      const ready = (endpoints ?? []).filter(({ conditions }) => conditions?.ready === true);
      return port === undefined ? [] : ready.flatMap(({ addresses }) => addresses.map((host) => ({ host, port })));
    });
    const target = targets[this.#next++ % targets.length];
    if (target === undefined) return void client.destroy();
    const server = connect(target);
    client.on("error", () => server.destroy());
    server.on("error", () => client.destroy());
    client.pipe(server).pipe(client);
  }
}
