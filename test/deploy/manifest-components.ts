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

/** The base with these components beside another one in its namespace: with a prefix and an instance of its own. */
export function renderedBeside(kubectl: string, components: readonly string[], name: string): Manifest[] {
  const pairs = { "app.kubernetes.io/instance": name };
  return inFolder((folder, write) => {
    write(".", {
      namePrefix: `${name}-`,
      labels: [{ pairs, includeSelectors: true, includeTemplates: true }],
      resources: ["k8s/base"],
      components: components.map((component) => `k8s/components/${component}`),
    });
    return kustomized(kubectl, folder);
  });
}

function renderedAtOnce(kubectl: string, lists: readonly (readonly string[])[]): Manifest[][] {
  return inFolder((folder, write) => {
    const prefixes = lists.map((_, i) => `list${i}-`);
    for (const [i, components] of lists.entries()) {
      mkdirSync(join(folder, String(i)));
      const paths = components.map((name) => `../k8s/components/${name}`);
      write(String(i), { resources: ["../k8s/base"], components: paths, namePrefix: prefixes[i] });
    }
    write(".", { resources: lists.map((_, i) => String(i)) });
    const all = kustomized(kubectl, folder);
    return prefixes.map((prefix) => {
      const own = all.filter(({ metadata }) => metadata.name.startsWith(prefix));
      return JSON.parse(JSON.stringify(own).replaceAll(prefix, "")) as Manifest[];
    });
  });
}

/** A folder with the manifests in it as `k8s`, since Kustomize takes no absolute paths, and what writes one beside them. */
function inFolder<T>(use: (folder: string, write: (path: string, rest: object) => void) => T): T {
  const folder = mkdtempSync(join(tmpdir(), "gnomon-kustomize-"));
  const head = { apiVersion: "kustomize.config.k8s.io/v1beta1", kind: "Kustomization" };
  try {
    symlinkSync(FOLDER, join(folder, "k8s"));
    return use(folder, (path, rest) =>
      writeFileSync(join(folder, path, "kustomization.yaml"), stringify({ ...head, ...rest })),
    );
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function kustomized(kubectl: string, folder: string): Manifest[] {
  return documentsOf(execFileSync(kubectl, ["kustomize", folder], { encoding: "utf8", stdio: "pipe" }));
}

export function documentsOf(text: string): Manifest[] {
  return parseAllDocuments(text)
    .map((document) => document.toJS() as Manifest | null)
    .filter((one) => one !== null);
}
