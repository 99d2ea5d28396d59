import { existsSync, readFileSync } from "node:fs";
import { homedir } from "node:os";
import { delimiter, dirname, isAbsolute, join } from "node:path";
import { yamlValueOf } from "#trace/yaml-text.ts";
import type { ExecPlugin } from "./exec-credential.ts";

/** A cluster of a kubeconfig: where its API server is, and how it shows who it is. */
export interface KubeCluster {
  readonly server: string;
  readonly "certificate-authority"?: string;
  /** Base64, as the other data. */
  readonly "certificate-authority-data"?: string;
  readonly "insecure-skip-tls-verify"?: boolean;
  readonly "tls-server-name"?: string;
  readonly "proxy-url"?: string;
}

/** A user of a kubeconfig: with what the gateway shows who it is. */
export interface KubeUser {
  readonly token?: string;
  readonly tokenFile?: string;
  readonly "client-certificate"?: string;
  readonly "client-certificate-data"?: string;
  readonly "client-key"?: string;
  readonly "client-key-data"?: string;
  readonly exec?: ExecPlugin;
  readonly as?: string;
}

/** Both, as the current context joins them. */
export interface KubeContext {
  readonly cluster: KubeCluster;
  readonly user: KubeUser;
}

const SERVICE_ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount";
const TOKEN_FILE = `${SERVICE_ACCOUNT}/token`;
const FILE_FIELDS: ReadonlySet<string> = new Set([
  "certificate-authority",
  "tokenFile",
  "client-certificate",
  "client-key",
]);

type Environment = Readonly<Record<string, string | undefined>>;

/**
 * What kubectl would use: the files of KUBECONFIG or ~/.kube/config; where there are none, the pod's service account.
 * Throws an Error that names where it looked when there is nothing.
 */
export function kubeContext(environment: Environment, home = homedir()): KubeContext {
  const named = environment["KUBECONFIG"]?.split(delimiter).filter((file) => file !== "") ?? [];
  const files = (named.length > 0 ? named : [join(home, ".kube/config")]).filter((file) => existsSync(file));
  if (files.length > 0) return contextOf(files);
  if (existsSync(TOKEN_FILE)) return serviceAccount(environment);
  throw new Error(noCredential(environment, named));
}

function serviceAccount(environment: Environment): KubeContext {
  const host = environment["KUBERNETES_SERVICE_HOST"] ?? "kubernetes.default.svc";
  const port = environment["KUBERNETES_SERVICE_PORT"] ?? "443";
  return {
    cluster: {
      server: `https://${host.includes(":") ? `[${host}]` : host}:${port}`,
      "certificate-authority": `${SERVICE_ACCOUNT}/ca.crt`,
    },
    user: { tokenFile: TOKEN_FILE },
  };
}

interface Named {
  readonly name: string;
}

interface Kubeconfig {
  readonly "current-context"?: string;
  readonly contexts?: readonly (Named & { readonly context?: { readonly cluster?: string; readonly user?: string } })[];
  readonly clusters?: readonly (Named & { readonly cluster?: KubeCluster })[];
  readonly users?: readonly (Named & { readonly user?: KubeUser })[];
}

/** Of several files the first one that has something is in force for it, as with kubectl. */
function contextOf(files: readonly string[]): KubeContext {
  const configs = files.map(readKubeconfig);
  const current = configs.find((config) => (config["current-context"] ?? "") !== "")?.["current-context"];
  const byName = <T extends Named>(all: readonly T[], name: string | undefined) => all.find((one) => one.name === name);
  const context = byName(
    configs.flatMap(({ contexts }) => contexts ?? []),
    current,
  )?.context;
  const clusters = configs.flatMap(({ clusters: some }) => some ?? []);
  const cluster = byName(clusters, context?.cluster)?.cluster;
  const where = files.join(delimiter);
  if (typeof cluster?.server !== "string")
    throw new Error(`discovery: ${where} has no current context, or one without a cluster`);
  const users = configs.flatMap(({ users: some }) => some ?? []);
  const user: KubeUser & { readonly "auth-provider"?: unknown } = byName(users, context?.user)?.user ?? {};
  if (user["auth-provider"] !== undefined) {
    throw new Error(
      `discovery: ${where}: expected a user with token, tokenFile, client-certificate or exec, got auth-provider`,
    );
  }
  return { cluster, user };
}

function readKubeconfig(file: string): Kubeconfig {
  const read = yamlValueOf(readFileSync(file, "utf8"));
  // The text around a mistake may be a key.
  if (!read.ok) throw new Error(`discovery: ${file} cannot be read as YAML (${read.code})`);
  const config = read.value;
  if (typeof config !== "object" || config === null) throw new Error(`discovery: ${file}: expected a kubeconfig`);
  const { clusters, users, ...rest } = config as Kubeconfig;
  const folder = dirname(file);
  return {
    ...rest,
    ...(clusters && { clusters: clusters.map((one) => ({ ...one, cluster: absolute(one.cluster, folder) })) }),
    ...(users && { users: users.map((one) => ({ ...one, user: absolute(one.user, folder) })) }),
  };
}

/** Paths are of the file that they stand in. */
function absolute<T extends object>(fields: T | undefined, folder: string): T {
  const changed = Object.entries(fields ?? {}).map(([name, value]: [string, unknown]) =>
    FILE_FIELDS.has(name) && typeof value === "string" && !isAbsolute(value)
      ? [name, join(folder, value)]
      : [name, value],
  );
  return Object.fromEntries(changed) as T;
}

function noCredential(environment: Environment, named: readonly string[]): string {
  if (named.length > 0)
    return `discovery: no API server is configured: KUBECONFIG names ${named.join(delimiter)}, which is not there`;
  if (environment["KUBERNETES_SERVICE_HOST"] !== undefined) {
    return `discovery: this pod has no service account token (${TOKEN_FILE} is missing); set automountServiceAccountToken: true for it, or KUBECONFIG`;
  }
  return `discovery: no API server is configured: KUBECONFIG is not set, there is no ~/.kube/config, and no ${TOKEN_FILE} as a pod would have`;
}
