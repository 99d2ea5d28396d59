import { execFileSync } from "node:child_process";
import { cpSync, globSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { erase, namedByJavaScript } from "./erase.ts";

/**
 * `node deploy/package/pack.ts [FOLDER] [--whole]`: writes the npm package into FOLDER (here by default). With --whole
 * it is as an image has it: the packages that only some gateways need are dependencies like all others, and there are no
 * declarations, which prune.sh would drop.
 *
 * Node reads no types below node_modules, so they are erased as the package is made: they become spaces, so that lines
 * and columns of an error are those of the source. Declarations come along for the core, which is a library of its own.
 */
const ROOT = resolve(import.meta.dirname, "../..");
const WHOLE = process.argv.includes("--whole");
const FOLDER = resolve(process.argv.slice(2).find((word) => word !== "--whole") ?? ".");
const COPIED = ["config", "LICENSE", "README.md"];

const stage = mkdtempSync(join(tmpdir(), "gnomon-package-"));
try {
  for (const name of COPIED) cpSync(join(ROOT, name), join(stage, name), { recursive: true });
  for (const name of globSync("bin/**/*.{js,cjs}", { cwd: ROOT })) copyChanged(name, name, namedByJavaScript);
  for (const name of globSync("src/**/*.ts", { cwd: ROOT })) copyChanged(name, name.replace(/\.ts$/, ".js"), erase);
  if (!WHOLE) declareCore();
  writeFileSync(join(stage, "package.json"), `${JSON.stringify(manifest(), null, 2)}\n`);
  mkdirSync(FOLDER, { recursive: true });
  execFileSync("npm", ["pack", "--silent", "--pack-destination", FOLDER], {
    cwd: stage,
    stdio: ["ignore", "inherit", "inherit"],
  });
} finally {
  rmSync(stage, { recursive: true, force: true });
}

function copyChanged(name: string, as: string, change: (text: string) => string): void {
  const target = join(stage, as);
  mkdirSync(dirname(target), { recursive: true });
  writeFileSync(target, change(readFileSync(join(ROOT, name), "utf8")));
}

/** Declarations of src/core alone, whose modules name one another by their JavaScript. */
function declareCore(): void {
  const out = join(stage, "src");
  const tsc = join(ROOT, "node_modules/.bin/tsc");
  const cache = join(stage, "core.tsbuildinfo");
  execFileSync(tsc, ["-p", join(ROOT, "src/core"), "--outDir", out, "--tsBuildInfoFile", cache], { stdio: "inherit" });
  rmSync(cache, { force: true });
  for (const name of globSync("src/core/**/*.d.ts", { cwd: stage })) {
    const file = join(stage, name);
    writeFileSync(file, namedByJavaScript(readFileSync(file, "utf8")));
  }
}

function manifest(): object {
  const {
    private: _,
    scripts: __,
    devDependencies: ___,
    optionalDependencies: ____,
    allowScripts: _____,
    dependencies,
    peerDependencies,
    peerDependenciesMeta,
    ...kept
  } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8")) as Readonly<Record<string, object>>;
  return {
    ...kept,
    ...(WHOLE
      ? { dependencies: { ...dependencies, ...peerDependencies } }
      : { dependencies, peerDependencies, peerDependenciesMeta }),
    publishConfig: { access: "public" },
    exports: {
      "./core": { types: "./src/core/router.d.ts", default: "./src/core/router.js" },
      "./core/*": { types: "./src/core/*.d.ts", default: "./src/core/*.js" },
      "./package.json": "./package.json",
    },
    files: ["bin", "config", "src"],
  };
}
