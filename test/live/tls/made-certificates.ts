import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestContext } from "node:test";
import { selfSigned } from "#picker/self-signed.ts";

/** A certificate that is signed by itself is valid from so long before its time on. */
const DAY_MILLIS = 86_400_000;

/** Files with a certificate and its key. */
export interface Pair {
  readonly certFile: string;
  readonly keyFile: string;
  readonly cert: string;
  readonly key: string;
}

/** Certificates made by openssl, in a folder that is removed with the test. */
export class Certificates {
  readonly folder: string;
  readonly #count: Record<string, number> = {};

  constructor(t: TestContext) {
    this.folder = mkdtempSync(join(tmpdir(), "certificates-"));
    t.after(() => rmSync(this.folder, { recursive: true }));
  }

  root(name: string): Pair {
    const [certFile, keyFile] = this.#files(name);
    const key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", keyFile];
    openssl("req", "-x509", ...key, "-out", certFile, "-days", "2", "-subj", `/CN=${name}`);
    return pair(certFile, keyFile);
  }

  /** Signed by a root, for 127.0.0.1, localhost and further names; valid for so many days, perhaps over already. */
  signed(root: Pair, name: string, more: { readonly names?: readonly string[]; readonly days?: number } = {}): Pair {
    const [certFile, keyFile] = this.#files(name);
    const request = join(this.folder, "request.pem");
    const key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", keyFile];
    openssl("req", ...key, "-out", request, "-subj", `/CN=${name}`);
    const extensions = join(this.folder, "extensions");
    const names = ["IP:127.0.0.1", ...(more.names ?? ["localhost"]).map((one) => `DNS:${one}`)];
    writeFileSync(extensions, `subjectAltName=${names.join(",")}\n`);
    const life = ["-days", String(more.days ?? 2)];
    const signer = ["-CA", root.certFile, "-CAkey", root.keyFile, "-CAcreateserial", "-extfile", extensions];
    openssl("x509", "-req", "-in", request, ...signer, ...life, "-out", certFile);
    return pair(certFile, keyFile);
  }

  /** Signed by itself, valid from then on. */
  beginning(name: string, at: Date): Pair {
    const [certFile, keyFile] = this.#files(name);
    const { cert, key } = selfSigned(name, new Date(at.getTime() + DAY_MILLIS));
    writeFileSync(certFile, cert);
    writeFileSync(keyFile, key);
    return pair(certFile, keyFile);
  }

  #files(name: string): [string, string] {
    const number = (this.#count[name] = (this.#count[name] ?? 0) + 1);
    return [join(this.folder, `${name}${number}.pem`), join(this.folder, `${name}${number}.key`)];
  }
}

function pair(certFile: string, keyFile: string): Pair {
  return { certFile, keyFile, cert: readFileSync(certFile, "utf8"), key: readFileSync(keyFile, "utf8") };
}

function openssl(...args: string[]): void {
  execFileSync("openssl", args, { stdio: "pipe" });
}
