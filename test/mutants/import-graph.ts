import { existsSync, readFileSync } from "node:fs";
import { dirname, join, posix } from "node:path";

/** Which files of the repository a file loads, itself or through others. Types are not loaded. */
export class ImportGraph {
  readonly #root: string;
  readonly #links = new Map<string, readonly string[]>();

  constructor(root: string) {
    this.#root = root;
  }

  /** Files that are loaded with this one, with the number of imports on the way. */
  reachedFrom(file: string): ReadonlyMap<string, number> {
    const reached = new Map([[file, 0]]);
    // A map goes on over what is added on the way.
    for (const [one, distance] of reached) {
      for (const next of this.#linksOf(one)) if (!reached.has(next)) reached.set(next, distance + 1);
    }
    return reached;
  }

  #linksOf(file: string): readonly string[] {
    let links = this.#links.get(file);
    if (links === undefined) {
      links = linksIn(readFileSync(join(this.#root, file), "utf8"))
        .map((link) => resolved(file, link))
        .filter((target) => existsSync(join(this.#root, target)));
      this.#links.set(file, links);
    }
    return links;
  }
}

/** Every text that names a file, for workers and what is loaded on demand are named so too. */
function linksIn(text: string): string[] {
  const loaded = text.replaceAll(/^(?:import|export) type\b[^;]*;/gm, "");
  return [...loaded.matchAll(/"((?:\.{1,2}\/|#)[^"\s]+\.ts)"/g)].map(([, link]) => link!);
}

function resolved(file: string, link: string): string {
  return link.startsWith("#") ? `src/${link.slice(1)}` : posix.normalize(posix.join(dirname(file), link));
}
