import { execFileSync } from "node:child_process";
import { globSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { parseAllDocuments, stringify } from "yaml";

const FOLDER = resolve(import.meta.dirname, "../../k8s");
/** What each adds, by the folder's name. */
export const COMPONENTS = globSync("components/*", { cwd: FOLDER })
  .map((path) => path.replace(/.*[/\\]/, ""))
  .sort();
/** Two sources of engines, of which a gateway of these manifests has one. */
const ALTERNATIVES: readonly (readonly [string, string])[] = [["inference-pool", "static"]];

export interface Manifest {
  readonly kind: string;
  readonly metadata: { readonly name: string };
  readonly spec?: {
    readonly template?: { readonly metadata: object; readonly spec: Readonly<Record<string, unknown>> };
  };
}

/** Every pair that combines, in one order. */
export function pairs(): (readonly [string, string])[] {
  const all = COMPONENTS.flatMap((one, i) => COMPONENTS.slice(i + 1).map((other) => [one, other] as const));
  return all.filter(([one, other]) => !ALTERNATIVES.some(([a, b]) => a === one && b === other));
}

/** The base with these components, in this order, by `kubectl kustomize`. */
export function rendered(kubectl: string, components: readonly string[]): Manifest[] {
  const folder = mkdtempSync(join(tmpdir(), "gnomon-kustomize-"));
  try {
    // Kustomize takes no absolute paths.
    symlinkSync(FOLDER, join(folder, "k8s"));
    const kustomization = {
      apiVersion: "kustomize.config.k8s.io/v1beta1",
      kind: "Kustomization",
      resources: ["k8s/base"],
      components: components.map((name) => `k8s/components/${name}`),
    };
    writeFileSync(join(folder, "kustomization.yaml"), stringify(kustomization));
    return documentsOf(execFileSync(kubectl, ["kustomize", folder], { encoding: "utf8", stdio: "pipe" }));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

export function documentsOf(text: string): Manifest[] {
  return parseAllDocuments(text)
    .map((document) => document.toJS() as Manifest | null)
    .filter((one) => one !== null);
}
