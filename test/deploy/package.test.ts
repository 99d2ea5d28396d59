import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, globSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { test } from "node:test";
import { erase } from "../../deploy/package/erase.ts";

const ROOT = resolve(import.meta.dirname, "../..");
const IMPORTS = (JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8")) as { imports: Record<string, string> })
  .imports;

/** Names of our own modules in a text that has no types any more. */
const NAME = /(?:\bfrom|\bimport|\bimport\(|\bnew URL\()\s*"([#.][^"]*\.[jt]s)"/g;

test("in the package every module is named by its JavaScript, and is there", () => {
  const wrong: string[] = [];
  for (const file of globSync("src/**/*.ts", { cwd: ROOT })) {
    const text = erase(readFileSync(join(ROOT, file), "utf8"));
    for (const [, name = ""] of text.matchAll(NAME)) {
      const source = resolve(ROOT, pathOf(name, file).replace(/\.js$/, ".ts"));
      if (name.endsWith(".ts") || !existsSync(source)) wrong.push(`${file}: ${name}`);
    }
  }
  assert.deepEqual(wrong, []);
});

test("types become spaces, so that places in the package are those of the source", () => {
  const source = 'import type { A } from "./a.ts";\nimport { b } from "#core/b.ts";\nexport const c: A = b as A;\n';
  const erased = erase(source);
  assert.equal(erased.indexOf("export const"), source.indexOf("export const"));
  assert.match(erased, /import \{ b \} from "#core\/b\.js";/);
  assert.ok(!erased.includes("./a"));
});

const NODE = process.env["GNOMON_NODE"] ?? "";
const skip =
  NODE === "" ? "GNOMON_NODE names no Node to run the package with, such as the oldest that it states" : false;

test(
  "the package runs on another Node: it answers its version, simulates, serves, records and replays",
  { skip },
  async (t) => {
    const folder = mkdtempSync(join(tmpdir(), "gnomon-package-test-"));
    t.after(() => rmSync(folder, { recursive: true, force: true }));
    execFileSync(process.execPath, [join(ROOT, "deploy/package/pack.ts"), folder], { stdio: "ignore" });
    execFileSync("tar", ["-xzf", globSync("*.tgz", { cwd: folder })[0]!], { cwd: folder });
    symlinkSync(join(ROOT, "node_modules"), join(folder, "package/node_modules"));
    const argv = (...args: string[]) => [join(folder, "package/bin/gnomon.js"), ...args];
    const own = Object.entries(process.env).filter(([name]) => !name.startsWith("GNOMON_") && name !== "NODE_OPTIONS");
    const env = Object.fromEntries(own);
    const run = (...args: string[]) => execFileSync(NODE, argv(...args), { encoding: "utf8", stdio: "pipe", env });
    assert.match(run("--version"), /^\d+\.\d+\.\d+/);
    assert.match(run("simulate", "--num-requests", "20"), /20 completed/);
    const trace = join(folder, "trace");
    const gateway = spawn(NODE, argv("serve", "--port", "0", "--record", trace), {
      stdio: ["ignore", "pipe", "ignore"],
      env,
    });
    t.after(() => gateway.kill("SIGKILL"));
    let out = "";
    gateway.stdout.setEncoding("utf8").on("data", (text: string) => (out += text));
    const urlIn = /http:\/\/127\.0\.0\.1:\d+/;
    while (!urlIn.test(out)) await once(gateway.stdout, "data");
    const messages = [{ role: "user", content: "word ".repeat(100) }];
    const body = JSON.stringify({ model: "llama-3.1-8b", messages, max_tokens: 4 });
    const init = { method: "POST", headers: { "content-type": "application/json" }, body };
    assert.equal((await fetch(`${urlIn.exec(out)![0]}/v1/chat/completions`, init)).status, 200);
    gateway.kill("SIGTERM");
    await once(gateway, "exit");
    assert.match(run("replay", trace), /1 decisions compared: all identical/);
  },
);

function pathOf(name: string, file: string): string {
  if (name.startsWith(".")) return join(dirname(file), name);
  const folder = name.slice(0, name.indexOf("/") + 1);
  const target = IMPORTS[`${folder}*`] ?? "";
  return target.replace("*", name.slice(folder.length));
}
