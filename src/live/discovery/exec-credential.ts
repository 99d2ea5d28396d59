import { execFile } from "node:child_process";
import { promisify } from "node:util";

/** As the users of a kubeconfig name a program that brings credentials, such as a cloud's. */
export interface ExecPlugin {
  readonly apiVersion?: string;
  readonly command: string;
  readonly args?: readonly string[] | null;
  readonly env?: readonly { readonly name: string; readonly value: string }[] | null;
}

/** What the program answers of use. */
export interface ExecCredential {
  readonly token?: string;
  readonly clientCertificateData?: string;
  readonly clientKeyData?: string;
  readonly expirationTimestamp?: string;
}

const API_VERSION = "client.authentication.k8s.io/v1";
const ANSWER_MILLIS_MAX = 30_000;
const ANSWER_BYTES_MAX = 1_048_576;
/** A credential is renewed this long before it expires. */
const EARLY_MILLIS = 60_000;
const run = promisify(execFile);

/** Asks the program for a credential, and again when that is about to expire. */
export class ExecCredentials {
  readonly #plugin: ExecPlugin;
  #credential: Promise<ExecCredential> | undefined;
  #validUntil = 0;

  constructor(plugin: ExecPlugin) {
    this.#plugin = plugin;
  }

  async current(): Promise<ExecCredential> {
    if (this.#credential === undefined || Date.now() > this.#validUntil) {
      this.#validUntil = Infinity;
      this.#credential = this.#ask();
    }
    try {
      const credential = await this.#credential;
      const { expirationTimestamp } = credential;
      if (expirationTimestamp !== undefined) this.#validUntil = Date.parse(expirationTimestamp) - EARLY_MILLIS;
      return credential;
    } catch (error) {
      this.forget();
      throw error;
    }
  }

  /** The server did not take it. */
  forget(): void {
    this.#credential = undefined;
  }

  /** What the program wrote may hold a secret, so that no error has its text. */
  async #ask(): Promise<ExecCredential> {
    const { apiVersion = API_VERSION, command, args, env } = this.#plugin;
    const own = Object.fromEntries((env ?? []).map(({ name, value }) => [name, value]));
    const info = JSON.stringify({ apiVersion, kind: "ExecCredential", spec: { interactive: false } });
    let status: ExecCredential | undefined;
    try {
      const { stdout } = await run(command, [...(args ?? [])], {
        env: { ...process.env, ...own, KUBERNETES_EXEC_INFO: info },
        timeout: ANSWER_MILLIS_MAX,
        maxBuffer: ANSWER_BYTES_MAX,
      });
      status = (JSON.parse(stdout) as { readonly status?: ExecCredential } | null)?.status;
    } catch (error) {
      const { code } = error as { readonly code?: unknown };
      throw Object.assign(new Error(`the kubeconfig's program ${command} brought no credential`), {
        code: code === "ENOENT" ? "ENOENT" : "EXEC_CREDENTIAL",
      });
    }
    if (status?.token === undefined && status?.clientCertificateData === undefined) {
      const message = `the kubeconfig's program ${command} brought neither a token nor a certificate`;
      throw Object.assign(new Error(message), { code: "EXEC_CREDENTIAL" });
    }
    return status;
  }
}
