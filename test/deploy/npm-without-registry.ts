/**
 * Stands in for npm where the image's tree is made: `ci` brings what the lock file names from what this project has
 * installed already, `sbom` is left empty, and everything else is npm's.
 */
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, symlinkSync } from "node:fs";
import { dirname, join, resolve } from "node:path";

const INSTALLED = resolve(import.meta.dirname, "../../node_modules");
const [npm = "npm", command = "", ...options] = process.argv.slice(2);

if (command === "sbom") process.stdout.write("{}\n");
else if (command !== "ci") execFileSync(npm, [command, ...options], { stdio: "inherit" });
else if (options.includes("--omit=dev")) copyNamed();
else symlinkSync(INSTALLED, "node_modules");

function copyNamed(): void {
  const { packages } = JSON.parse(readFileSync("package-lock.json", "utf8")) as {
    packages: Readonly<Record<string, { readonly dev?: true }>>;
  };
  for (const [name, { dev }] of Object.entries(packages)) {
    const from = join(INSTALLED, "..", name);
    // Those of other platforms are named there, too, and what lies within another package came with it.
    if (name === "" || dev === true || existsSync(name) || !existsSync(from)) continue;
    mkdirSync(dirname(name), { recursive: true });
    const copy = (how: string) => execFileSync("cp", [how, from, name], { stdio: "ignore" });
    try {
      copy("-al");
    } catch {
      copy("-a");
    }
  }
}
