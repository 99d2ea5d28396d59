/**
 * Stands in for npm where the image's tree is made: `ci` brings what the lock file names from what this project has
 * installed already, `sbom` is left empty, and `pack` puts the files that the manifest names together, in a tenth of npm's
 * time (package.test.ts has npm's own do it). Everything else is npm's.
 */
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, symlinkSync } from "node:fs";
import { dirname, join, resolve } from "node:path";

const INSTALLED = resolve(import.meta.dirname, "../../node_modules");
const [npm = "npm", command = "", ...options] = process.argv.slice(2);

if (command === "sbom") process.stdout.write("{}\n");
else if (command === "pack") pack(options[options.indexOf("--pack-destination") + 1] ?? ".");
else if (command !== "ci") execFileSync(npm, [command, ...options], { stdio: "inherit" });
else if (options.includes("--omit=dev")) copyNamed();
else symlinkSync(INSTALLED, "node_modules");

function pack(folder: string): void {
  const { name, version, files } = JSON.parse(readFileSync("package.json", "utf8")) as Packed;
  const packed = join(folder, `${name.replace("@", "").replace("/", "-")}-${version}.tgz`);
  const names = ["package.json", "README.md", "LICENSE", ...files];
  execFileSync("tar", ["-I", "gzip -1", "-cf", packed, "--transform=s,^,package/,", ...names]);
}

interface Packed {
  readonly name: string;
  readonly version: string;
  readonly files: readonly string[];
}

/** What the manifest and those that it brings name, as the lock file has it. */
function copyNamed(): void {
  const { packages } = JSON.parse(readFileSync("package-lock.json", "utf8")) as {
    packages: Readonly<Record<string, Named>>;
  };
  const { dependencies } = JSON.parse(readFileSync("package.json", "utf8")) as Named;
  const copied = new Set<string>();
  const bring = (from: string, name: string): void => {
    const place = placeOf(packages, from, name);
    if (place === undefined || copied.has(place)) return;
    copied.add(place);
    copy(place);
    const named = packages[place]!;
    for (const one of Object.keys({ ...named.dependencies, ...named.optionalDependencies })) bring(place, one);
  };
  for (const name of Object.keys(dependencies ?? {})) bring("", name);
}

interface Named {
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly optionalDependencies?: Readonly<Record<string, string>>;
}

/** As Node looks for it: within the package, and then in each folder around it. */
function placeOf(packages: Readonly<Record<string, Named>>, from: string, name: string): string | undefined {
  for (let around = from; ; around = around.slice(0, Math.max(0, around.lastIndexOf("/node_modules/")))) {
    const place = join(around, "node_modules", name);
    if (place in packages) return place;
    if (around === "") return undefined;
  }
}

function copy(name: string): void {
  const from = join(INSTALLED, "..", name);
  // Those of other platforms are named there, too, and what lies within another package came with it.
  if (existsSync(name) || !existsSync(from)) return;
  mkdirSync(dirname(name), { recursive: true });
  const by = (how: string) => execFileSync("cp", [how, from, name], { stdio: "ignore" });
  try {
    by("-al");
  } catch {
    by("-a");
  }
}
