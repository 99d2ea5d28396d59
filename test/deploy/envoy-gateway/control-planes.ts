import { execFile, execFileSync } from "node:child_process";
import { appendFileSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { parse, stringify } from "yaml";
import type { ClusterClient } from "../kubelet/cluster-client.ts";
import { HERE, makeBridge, startInOwnNetwork } from "./own-network.ts";

export const SYSTEM = "envoy-gateway-system";
const [ENVOY_GATEWAY_ADDRESS, EXTENSION_ADDRESS] = ["10.77.3.2", "10.77.3.3"];
const EXTENSION_NAMESPACE = "envoy-ai-gateway-system";
const EXTENSION = `ai-gateway-controller.${EXTENSION_NAMESPACE}.svc.cluster.local`;
const WEBHOOK = "envoy-ai-gateway-gateway-pod-mutator";
/** Its certificates are at a path that cannot be set: it sees a root folder that has one more. */
const WITH_CERTIFICATES = `
R="$0/root"; mkdir "$R"; mount -t tmpfs tmpfs "$R"
for d in /*; do
  if [ -L "$d" ]; then cp -P "$d" "$R$d"; elif [ -d "$d" ]; then mkdir "$R$d"; mount --rbind "$d" "$R$d"; fi
done
mkdir "$R/certs"; cp "$0"/certs/* "$R/certs/"
exec chroot "$R" "$@"`;

export interface ControlPlanes {
  /** Of envoy-gateway, ai-gateway-controller and definitions. */
  readonly programs: string;
  readonly client: ClusterClient;
  readonly kubeconfig: string;
  readonly apiServerPort: number;
  readonly folder: string;
}

/**
 * Envoy Gateway and the controller of Envoy AI Gateway, which teaches it InferencePools, as administrators of the cluster: their
 * configuration is that of docs/gateways.md.
 */
export async function startControlPlanes(planes: ControlPlanes): Promise<void> {
  for (const [name, address] of [
    [`envoy-gateway.${SYSTEM}.svc.cluster.local`, ENVOY_GATEWAY_ADDRESS],
    [EXTENSION, EXTENSION_ADDRESS],
  ] as const)
    appendFileSync("/etc/hosts", `${address} ${name} ${name}.\n`);
  await makeBridge(planes.apiServerPort);
  await startExtension(planes);
  await startEnvoyGateway(planes);
}

async function startEnvoyGateway(planes: ControlPlanes): Promise<void> {
  const { programs, client, kubeconfig, folder } = planes;
  const program = join(programs, "envoy-gateway");
  const place = join(folder, "envoy-gateway");
  mkdirSync(join(place, "certs"), { recursive: true });
  const env = { ...process.env, KUBECONFIG: kubeconfig, ENVOY_GATEWAY_NAMESPACE: SYSTEM };
  // The extension reaches the API server through this process meanwhile.
  await promisify(execFile)(program, ["certgen", "--disable-topology-injector"], { env });
  const path = `/api/v1/namespaces/${SYSTEM}/secrets/envoy-gateway`;
  const secret = await client.ask<{ data: Record<string, string> }>("GET", path);
  for (const [name, text] of Object.entries(secret!.data))
    writeFileSync(join(place, "certs", name), Buffer.from(text, "base64"));
  const file = join(place, "envoy-gateway.yaml");
  writeFileSync(file, stringify(configuration()));
  await startInOwnNetwork({
    name: "gateway",
    address: ENVOY_GATEWAY_ADDRESS,
    program: ["sh", "-euc", WITH_CERTIFICATES, place, program, "server", "--config-path", file],
    env: { ...env, KUBECONFIG: overBridge(planes, place) },
    log: join(folder, "envoy-gateway.log"),
  });
}

/** As docs/gateways.md has it. */
function configuration(): object {
  const guide = readFileSync(join(import.meta.dirname, "../../../docs/gateways.md"), "utf8");
  const [, block] = /```yaml\n(extensionApis:[\s\S]*?)```/.exec(guide)!;
  return {
    apiVersion: "gateway.envoyproxy.io/v1alpha1",
    kind: "EnvoyGateway",
    gateway: { controllerName: "gateway.envoyproxy.io/gatewayclass-controller" },
    provider: { type: "Kubernetes", kubernetes: { topologyInjector: { disable: true } } },
    ...(parse(block!) as object),
  };
}

async function startExtension(planes: ControlPlanes): Promise<void> {
  const { programs, client, folder } = planes;
  const place = join(folder, "ai-gateway");
  mkdirSync(place);
  // A certificate for the webhook that puts a container into Envoy's pods, which an HTTPRoute does not need: it matches no pod.
  const files = ["-keyout", join(place, "tls.key"), "-out", join(place, "tls.crt")];
  const request = ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"];
  execFileSync("openssl", [...request, ...files, "-subj", "/CN=webhook"], { stdio: "ignore" });
  writeFileSync(join(place, "ca.crt"), readFileSync(join(place, "tls.crt")));
  await client.ask("POST", "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations", webhook());
  const flags = [`--envoyGatewayNamespace=${SYSTEM}`, "--enableLeaderElection=false", `--tlsCertDir=${place}`];
  await startInOwnNetwork({
    name: "ai",
    address: EXTENSION_ADDRESS,
    program: [join(programs, "ai-gateway-controller"), ...flags],
    env: { ...process.env, KUBECONFIG: overBridge(planes, place), POD_NAMESPACE: EXTENSION_NAMESPACE },
    log: join(folder, "ai-gateway.log"),
  });
}

/** A kubeconfig for who reaches the API server over the bridge. */
function overBridge({ kubeconfig, apiServerPort }: ControlPlanes, place: string): string {
  const file = join(place, "kubeconfig");
  const server = `server: "https://${HERE}:${apiServerPort}", tls-server-name: localhost`;
  writeFileSync(file, readFileSync(kubeconfig, "utf8").replace(/server: "[^"]*"/, server));
  return file;
}

function webhook(): object {
  return {
    apiVersion: "admissionregistration.k8s.io/v1",
    kind: "MutatingWebhookConfiguration",
    metadata: { name: `${WEBHOOK}.${EXTENSION_NAMESPACE}` },
    webhooks: [
      {
        name: "pods.gnomon.test",
        clientConfig: { url: `https://${EXTENSION_ADDRESS}:9443/mutate` },
        rules: [{ apiGroups: [""], apiVersions: ["v1"], operations: ["CREATE"], resources: ["pods"] }],
        namespaceSelector: { matchLabels: { "gnomon.test/none": "true" } },
        sideEffects: "None",
        admissionReviewVersions: ["v1"],
        failurePolicy: "Ignore",
      },
    ],
  };
}
