import { createPrivateKey, X509Certificate } from "node:crypto";
import { readFileSync } from "node:fs";
import { createSecureContext, type SecureContextOptions, type SecureVersion } from "node:tls";
import { ConfigError } from "#config/config-error.ts";
import type { FaultLog } from "#live/log/fault-log.ts";
import type { Certificates } from "./certificates.ts";
import { readConfiguredFile } from "../process/configured-file.ts";
import { WatchedFile } from "../process/watched-file.ts";

/** Files of one use of TLS, and the configuration's names for them. */
export interface TlsFilesOptions {
  /** Section of the configuration, for messages. */
  readonly section: string;
  readonly cert?: {
    readonly certKey: string;
    readonly certFile: string;
    readonly keyKey: string;
    readonly keyFile: string;
  };
  readonly ca?: { readonly caKey: string; readonly caFile: string };
  readonly minVersion: SecureVersion;
  readonly watchMillis: number;
  readonly report: FaultLog["report"];
  /** Notes when its certificate runs out. */
  readonly certificates: Certificates;
}

/** Where it is noted that files change, and when certificates run out. */
export type TlsNotes = Pick<TlsFilesOptions, "report" | "certificates">;

const DAY_MILLIS = 86_400_000;
/** A certificate may be used so long before it is valid: its issuer's clock may be ahead of ours. */
const CLOCKS_DIFFER_MILLIS = 60_000;

/** A certificate that may not be used before then, in Unix milliseconds. */
class NotYetValid extends ConfigError {
  readonly usableMillis: number;

  constructor(line: string, usableMillis: number) {
    super([line]);
    this.usableMillis = usableMillis;
  }
}

/**
 * Certificates and keys, read again when one of their files changes. Throws ConfigError with a file's name where it holds
 * none, where key and certificate do not belong together, or where it is not the certificate's time; later that changes
 * nothing and is reported. One whose time has not begun is taken once it has.
 */
export class TlsFiles {
  readonly #options: TlsFilesOptions;
  readonly #watched: readonly WatchedFile[];
  readonly #listeners: ((context: SecureContextOptions) => void)[] = [];
  /** Until a certificate can be used that was refused as not valid yet. */
  #early: NodeJS.Timeout | undefined;
  context: SecureContextOptions;

  constructor(options: TlsFilesOptions) {
    this.#options = options;
    this.context = contextOf(options);
    this.#note();
    this.#watched = filesOf(options).map(
      (file) =>
        new WatchedFile({
          file,
          watchMillis: options.watchMillis,
          text: readFileSync(file, "utf8"),
          changed: () => this.#changed(),
          unreadable: (reason) => this.#refuse(`${file}: ${reason}`),
        }),
    );
    for (const file of this.#watched) file.start();
  }

  readonly listen = (changed: (context: SecureContextOptions) => void): void => void this.#listeners.push(changed);

  async stop(): Promise<void> {
    await Promise.all(this.#watched.map((file) => file.stop()));
    clearTimeout(this.#early);
  }

  #changed(): void {
    const { section, report } = this.#options;
    clearTimeout(this.#early);
    let context: SecureContextOptions;
    try {
      context = contextOf(this.#options);
    } catch (error) {
      if (error instanceof NotYetValid) {
        const millis = Math.min(DAY_MILLIS, error.usableMillis - Date.now());
        this.#early = setTimeout(() => this.#changed(), millis).unref();
      }
      return this.#refuse(error instanceof ConfigError ? error.lines.join("; ") : String(error));
    }
    if (JSON.stringify(context) === JSON.stringify(this.context)) return;
    this.context = context;
    for (const listener of this.#listeners) listener(context);
    const validTo = this.#note();
    const until = validTo === undefined ? "" : `, valid until ${validTo}`;
    report({ kind: "tls-changed", detail: `${section}${until}`, done: "it counts from the next connection on" });
  }

  /** Until when the certificate is valid; undefined where there is none. */
  #note(): string | undefined {
    const { section, cert, certificates } = this.#options;
    if (cert === undefined) return undefined;
    const { validTo } = new X509Certificate(String(this.context.cert));
    certificates.set(section, Date.parse(validTo) / 1e3);
    return validTo;
  }

  #refuse(detail: string): void {
    this.#options.report({ kind: "tls-refused", detail, done: "the certificates of before stay" });
  }
}

function filesOf({ cert, ca }: TlsFilesOptions): string[] {
  return [...(cert === undefined ? [] : [cert.certFile, cert.keyFile]), ...(ca === undefined ? [] : [ca.caFile])];
}

function contextOf({ section, cert, ca, minVersion }: TlsFilesOptions): SecureContextOptions {
  const context = {
    ...(cert && pairOf(section, cert)),
    ...(ca && { ca: rootsOf(`${section}.${ca.caKey}`, ca.caFile) }),
    minVersion,
  };
  try {
    createSecureContext(context);
  } catch (error) {
    throw new ConfigError([`${section}: expected files that TLS takes, got ${reasonOf(error)}`]);
  }
  return context;
}

function pairOf(section: string, { certKey, certFile, keyKey, keyFile }: NonNullable<TlsFilesOptions["cert"]>) {
  const cert = readConfiguredFile(`${section}.${certKey}`, certFile);
  const certificate = parsed(`${section}.${certKey}`, "a PEM certificate", certFile, () => new X509Certificate(cert));
  const key = readConfiguredFile(`${section}.${keyKey}`, keyFile);
  const secret = parsed(`${section}.${keyKey}`, "a PEM private key without a passphrase", keyFile, () =>
    createPrivateKey(key),
  );
  if (!certificate.checkPrivateKey(secret)) {
    throw new ConfigError([`${section}.${keyKey}: expected the key of ${certFile}, got another one in ${keyFile}`]);
  }
  const over = Date.now() - Date.parse(certificate.validTo);
  if (over > 0) {
    const days = Math.ceil(over / DAY_MILLIS);
    throw new ConfigError([
      `${section}.${certKey}: expected a certificate that is valid, got one over for ${days} days in ${certFile}`,
    ]);
  }
  const usableMillis = Date.parse(certificate.validFrom) - CLOCKS_DIFFER_MILLIS;
  if (Date.now() < usableMillis) {
    const got = `one valid from ${certificate.validFrom} in ${certFile}`;
    throw new NotYetValid(`${section}.${certKey}: expected a certificate that is valid, got ${got}`, usableMillis);
  }
  return { cert, key };
}

const BOUNDARY = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g;

function rootsOf(path: string, file: string): string {
  const text = readConfiguredFile(path, file);
  const roots = text.match(BOUNDARY) ?? [];
  if (roots.length === 0) throw new ConfigError([`${path}: expected PEM certificates, got none in ${file}`]);
  for (const root of roots) parsed(path, "PEM certificates", file, () => new X509Certificate(root));
  return text;
}

function parsed<T>(path: string, expected: string, file: string, parse: () => T): T {
  try {
    return parse();
  } catch (error) {
    throw new ConfigError([`${path}: expected ${expected}, got ${file}: ${reasonOf(error)}`]);
  }
}

/** OpenSSL's word; it quotes nothing of what was read. */
function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
