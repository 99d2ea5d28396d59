import { execFileSync } from "node:child_process";
import { globSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
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

/**
 * What Kustomize renders in one run: it compares all that it holds with all, so that many lists take far longer at once
 * than one after another, and starting it costs more than what a few lists do.
 */
const LISTS_AT_ONCE = 32;

/** The base with each of these lists of components, in their order. Names are those of each list alone. */
export function renderedEach(kubectl: string, lists: readonly (readonly string[])[]): Manifest[][] {
  const runs = Math.ceil(lists.length / LISTS_AT_ONCE);
  return Array.from({ length: runs }, (_, i) => i * LISTS_AT_ONCE).flatMap((from) =>
    renderedAtOnce(kubectl, lists.slice(from, from + LISTS_AT_ONCE)),
  );
}

function renderedAtOnce(kubectl: string, lists: readonly (readonly string[])[]): Manifest[][] {
  const folder = mkdtempSync(join(tmpdir(), "gnomon-kustomize-"));
  try {
    // Kustomize takes no absolute paths.
    symlinkSync(FOLDER, join(folder, "k8s"));
    const head = { apiVersion: "kustomize.config.k8s.io/v1beta1", kind: "Kustomization" };
    const write = (path: string, rest: object) =>
      writeFileSync(join(folder, path, "kustomization.yaml"), stringify({ ...head, ...rest }));
    const prefixes = lists.map((_, i) => `list${i}-`);
    for (const [i, components] of lists.entries()) {
      mkdirSync(join(folder, String(i)));
      const paths = components.map((name) => `../k8s/components/${name}`);
      write(String(i), { resources: ["../k8s/base"], components: paths, namePrefix: prefixes[i] });
    }
    write(".", { resources: lists.map((_, i) => String(i)) });
    const all = documentsOf(execFileSync(kubectl, ["kustomize", folder], { encoding: "utf8", stdio: "pipe" }));
    return prefixes.map((prefix) => {
      const own = all.filter(({ metadata }) => metadata.name.startsWith(prefix));
      return JSON.parse(JSON.stringify(own).replaceAll(prefix, "")) as Manifest[];
    });
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

export function documentsOf(text: string): Manifest[] {
  return parseAllDocuments(text)
    .map((document) => document.toJS() as Manifest | null)
    .filter((one) => one !== null);
}
