import { execFileSync } from "node:child_process";
import { globSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";

const ROOT = resolve(import.meta.dirname, "../..");

export interface InstalledPackage {
  /** Of the project that it is installed in. */
  readonly folder: string;
  /** Its own files. */
  readonly files: string;
  /** Names of the packages that come with it, and of those that it can use where they are installed. */
  readonly dependencies: readonly string[];
  readonly optional: readonly string[];
  /** What it is started by. */
  readonly command: string;
  remove(): void;
}

interface Manifest {
  readonly name: string;
  readonly bin: { readonly gnomon: string };
  readonly dependencies: Readonly<Record<string, string>>;
  readonly peerDependencies: Readonly<Record<string, string>>;
}

/**
 * Packs gnomon and installs it into an empty folder, as npm does: its files are the packed ones, and beside them is what
 * its manifest names, and no more. Those are links to what this project has installed, so that no registry is asked.
 */
export function installPackage(): InstalledPackage {
  const folder = mkdtempSync(join(tmpdir(), "gnomon-installed-"));
  execFileSync(process.execPath, [join(ROOT, "deploy/package/pack.ts"), folder], { stdio: "ignore" });
  const { name: own } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8")) as Manifest;
  const files = join(folder, "node_modules", own);
  mkdirSync(files, { recursive: true });
  const [packed = ""] = globSync("*.tgz", { cwd: folder });
  execFileSync("tar", ["-xzf", join(folder, packed), "--strip-components=1", "-C", files]);
  const manifest = JSON.parse(readFileSync(join(files, "package.json"), "utf8")) as Manifest;
  const dependencies = Object.keys(manifest.dependencies);
  for (const name of dependencies) {
    const link = join(folder, "node_modules", name);
    mkdirSync(dirname(link), { recursive: true });
    symlinkSync(join(ROOT, "node_modules", name), link);
  }
  mkdirSync(join(folder, "node_modules/.bin"));
  symlinkSync(join("..", own, manifest.bin.gnomon), join(folder, "node_modules/.bin/gnomon"));
  return {
    folder,
    files,
    dependencies,
    optional: Object.keys(manifest.peerDependencies),
    command: join(folder, "node_modules/.bin/gnomon"),
    remove: () => rmSync(folder, { recursive: true, force: true }),
  };
}
