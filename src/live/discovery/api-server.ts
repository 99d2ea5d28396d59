import { readFile } from "node:fs/promises";
import { Agent, type Dispatcher, ProxyAgent, request } from "undici";
import { ExecCredentials } from "./exec-credential.ts";
import type { KubeContext } from "./kubeconfig.ts";
import { StatusError } from "./kubernetes-fault.ts";

/** An answer is begun, and goes on, within this time. */
const SILENT_MILLIS_MAX = 30_000;
const UNAUTHORIZED = 401;

interface Tls {
  readonly ca?: string;
  readonly cert?: string;
  readonly key?: string;
  readonly servername?: string;
  readonly rejectUnauthorized: boolean;
}

/**
 * Connections to an API server, one a watch. Files of a credential are read again for each request, since tokens and
 * certificates are replaced while the gateway runs.
 */
export class ApiServer {
  readonly #context: KubeContext;
  readonly #exec: ExecCredentials | undefined;
  #tls = "";
  #dispatcher: Dispatcher | undefined;

  constructor(context: KubeContext) {
    this.#context = context;
    const { exec } = context.user;
    this.#exec = exec && new ExecCredentials(exec);
  }

  /** The body of a successful answer. Rejects with a StatusError, or with what the connection failed for. */
  async get(
    path: string,
    query: Readonly<Record<string, string>>,
    signal: AbortSignal,
  ): Promise<Dispatcher.ResponseData> {
    const { cluster, user } = this.#context;
    const url = new URL(cluster.server.replace(/\/$/, "") + path);
    for (const [name, value] of Object.entries(query)) url.searchParams.set(name, value);
    const given = await this.#exec?.current();
    const token = given?.token ?? user.token ?? (await contentOf(user.tokenFile))?.trim();
    const answer = await request(url, {
      headers: {
        accept: "application/json",
        "user-agent": "gnomon",
        ...(token !== undefined && { authorization: `Bearer ${token}` }),
        ...(user.as !== undefined && { "impersonate-user": user.as }),
      },
      signal,
      dispatcher: await this.#connections(given?.clientCertificateData, given?.clientKeyData),
    });
    if (answer.statusCode === 200) return answer;
    if (answer.statusCode === UNAUTHORIZED) this.#exec?.forget();
    await answer.body.dump();
    throw new StatusError(answer.statusCode);
  }

  async stop(): Promise<void> {
    await this.#dispatcher?.destroy();
  }

  async #connections(certificate: string | undefined, key: string | undefined): Promise<Dispatcher> {
    const { cluster, user } = this.#context;
    const ca = decoded(cluster["certificate-authority-data"]) ?? (await contentOf(cluster["certificate-authority"]));
    const cert =
      certificate ?? decoded(user["client-certificate-data"]) ?? (await contentOf(user["client-certificate"]));
    const ownKey = key ?? decoded(user["client-key-data"]) ?? (await contentOf(user["client-key"]));
    const servername = cluster["tls-server-name"];
    const tls: Tls = {
      ...(ca !== undefined && { ca }),
      ...(cert !== undefined && { cert }),
      ...(ownKey !== undefined && { key: ownKey }),
      ...(servername !== undefined && { servername }),
      rejectUnauthorized: cluster["insecure-skip-tls-verify"] !== true,
    };
    const text = JSON.stringify(tls);
    if (this.#dispatcher === undefined || text !== this.#tls) {
      // Watches that are open go on.
      void this.#dispatcher?.close();
      this.#tls = text;
      this.#dispatcher = dispatcherOf(tls, cluster["proxy-url"]);
    }
    return this.#dispatcher;
  }
}

function dispatcherOf(tls: Tls, proxy: string | undefined): Dispatcher {
  const options = {
    headersTimeout: SILENT_MILLIS_MAX,
    bodyTimeout: SILENT_MILLIS_MAX,
    pipelining: 1,
    allowH2: false,
  } as const;
  if (proxy !== undefined) return new ProxyAgent({ ...options, uri: proxy, requestTls: tls });
  return new Agent({ ...options, connect: { ...tls, timeout: SILENT_MILLIS_MAX } });
}

function decoded(base64: string | undefined): string | undefined {
  return base64 === undefined ? undefined : Buffer.from(base64, "base64").toString("utf8");
}

function contentOf(file: string | undefined): Promise<string | undefined> {
  return file === undefined ? Promise.resolve(undefined) : readFile(file, "utf8");
}
