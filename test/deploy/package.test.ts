import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { copyFileSync, existsSync, globSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { isBuiltin } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { after, describe, test } from "node:test";
import { parseSync } from "oxc-parser";
import { erase } from "../../deploy/package/erase.ts";
import { ownEnvironment, started } from "../cli/command-line.ts";
import { BRING, foundNodes, isAdmitted, OLDEST } from "./admitted-nodes.ts";
import { installPackage } from "./installed-package.ts";
import { assertServes, assertStops } from "./served-request.ts";

const ROOT = resolve(import.meta.dirname, "../..");
/** A module or a worker of ours that a module names by where it is. */
const NAMED_BESIDE = /\bnew URL\("([.][^"]*\.[jt]s)"/g;
const NODES = foundNodes();

test("types become spaces, so that places in the package are those of the source", () => {
  const source = 'import type { A } from "./a.ts";\nimport { b } from "#core/b.ts";\nexport const c: A = b as A;\n';
  const erased = erase(source);
  assert.equal(erased.indexOf("export const"), source.indexOf("export const"));
  assert.match(erased, /import \{ b \} from "#core\/b\.js";/);
  assert.ok(!erased.includes("./a"));
});

test("every package has its reason in ARCHITECTURE.md, and no other one has", () => {
  const { dependencies, peerDependencies } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8")) as {
    dependencies: object;
    peerDependencies: object;
  };
  const [, section = ""] = readFileSync(join(ROOT, "ARCHITECTURE.md"), "utf8").split("\n## Packages\n");
  const rows = section
    .split("\n## ")[0]!
    .split("\n")
    .filter((line) => line.startsWith("| "));
  const named = rows.slice(1).flatMap((row) => row.split("|")[1]!.match(/@?[a-z][\w-]*(?:\/[\w-]+)?(?=[ ,]|$)/g) ?? []);
  const whole = (name: string) =>
    /^(?:core|sdk-trace|resources|exporter-)/.test(name) ? `@opentelemetry/${name}` : name;
  const words = new Set(["only", "where", "asked", "for"]);
  const given = named.filter((name) => !words.has(name)).map(whole);
  assert.deepEqual(given.sort(), Object.keys({ ...dependencies, ...peerDependencies }).sort());
});

/** Of every module, package and worker that a module names. */
function namesIn(text: string): string[] {
  const { staticImports, staticExports, dynamicImports } = parseSync("module.js", text).module;
  const exported = staticExports.flatMap(({ entries }) => entries.map(({ moduleRequest }) => moduleRequest?.value));
  const later = dynamicImports.map(({ moduleRequest: { start, end } }) => text.slice(start, end));
  return [
    ...staticImports.map(({ moduleRequest }) => moduleRequest.value),
    ...exported.filter((name) => name !== undefined),
    ...later.filter((name) => name.startsWith('"')).map((name) => name.slice(1, -1)),
    ...[...text.matchAll(NAMED_BESIDE)].map(([, name]) => name!),
  ];
}

describe("the package, installed into an empty folder", () => {
  const installed = installPackage();
  after(() => installed.remove());
  // Its files are nowhere else: what is compiled of them goes with them.
  const env = { ...ownEnvironment(), NODE_COMPILE_CACHE: join(installed.folder, "compiled") };

  test("has every file that one of its modules names, and states every package", () => {
    const { imports } = JSON.parse(readFileSync(join(installed.files, "package.json"), "utf8")) as {
      imports: Readonly<Record<string, string>>;
    };
    const pathOf = (name: string, file: string): string => {
      if (name.startsWith(".")) return join(dirname(file), name);
      const folder = name.slice(0, name.indexOf("/") + 1);
      return (imports[`${folder}*`] ?? "").replace("*", name.slice(folder.length));
    };
    const isThere = (name: string, file: string): boolean => {
      if (/^[#.]/.test(name)) return existsSync(join(installed.files, pathOf(name, file)));
      if (name.startsWith("node:")) return isBuiltin(name);
      return [...installed.dependencies, ...installed.optional].some(
        (one) => name === one || name.startsWith(`${one}/`),
      );
    };
    const modules = globSync("{bin,src}/**/*.js", { cwd: installed.files });
    assert.ok(modules.length > 700, `${modules.length}`);
    const wrong = modules.flatMap((file) =>
      namesIn(readFileSync(join(installed.files, file), "utf8"))
        .filter((name) => !isThere(name, file))
        .map((name) => `${file}: ${name}`),
    );
    assert.deepEqual(wrong, []);
    assert.deepEqual(globSync("{bin,src}/**/!(*.d).ts", { cwd: installed.files }), []);
  });

  test("does without the packages that only some need, and names the one that a configuration asks for", () => {
    const asks: readonly (readonly [string, string])[] = [
      ["tokenizer.kind=tiktoken", "tokenizer.kind: needs a package that is not installed; npm install tiktoken@"],
      ["kvEvents.mode=on", "kvEvents.mode: needs a package that is not installed; npm install zeromq@"],
      ["tracing.url=http://127.0.0.1:1", "tracing.url: needs a package that is not installed; npm install @opentele"],
    ];
    const serve = ["serve", "--port", "0", ...asks.flatMap(([key]) => ["--set", key])];
    const emulate = ["emulate", "--port-base", "0", "--tokenizer-file", "x", "--chat-template", "x"];
    const commands: readonly (readonly [readonly string[], readonly string[]])[] = [
      [serve, asks.map(([, says]) => says)],
      [emulate, ["emulate.tokenizerFile: needs a package that is"]],
    ];
    for (const [args, expected] of commands) {
      const { status, stderr } = spawnSync(process.execPath, [installed.command, ...args], {
        encoding: "utf8",
        env,
        cwd: installed.folder,
        timeout: 60_000,
      });
      const lines = stderr.trimEnd().split("\n");
      assert.deepEqual([lines.length, status], [expected.length, 2], stderr);
      for (const [i, says] of expected.entries()) assert.ok(lines[i]!.startsWith(`gnomon: ${says}`), stderr);
    }
  });

  test(`the oldest Node that it admits, ${OLDEST}, is among those that it is tried with`, (t) => {
    if (!NODES.some(({ version }) => version.startsWith(`${OLDEST}.`)))
      t.skip(`not on this machine; brought by: ${BRING}`);
  });

  for (const node of NODES.filter(isAdmitted)) {
    test(`on Node ${node.version} it loads every command, serves, records, replays, and decides as a library`, async (t) => {
      const command = [node.path, installed.command];
      const run = (...args: string[]) =>
        execFileSync(node.path, [installed.command, ...args], { encoding: "utf8", env, cwd: installed.folder });
      const version = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8")) as { version: string };
      assert.equal(run("--version").trim(), version.version);
      // Its help loads the code of every command.
      assert.match(run("--help"), / what-if /);
      assert.match(run("simulate", "--num-requests", "20"), /20 completed/);
      const place = mkdtempSync(join(tmpdir(), "gnomon-package-"));
      t.after(() => rmSync(place, { recursive: true, force: true }));
      const trace = join(place, "trace");
      // A warm-up of its own length takes 3 s of CPU with a picker.
      const quick = ["listen.warmUpMillis=100", "emulate.count=1", "shadow.enabled=true"];
      const each = [...quick.flatMap((one) => ["--set", one]), "--picker-port", "0"];
      const served = started(t, [...command, "serve", "--port", "0", "--record", trace, ...each], {
        env,
        cwd: installed.folder,
      });
      await assertServes(served);
      await assertStops(served);
      assert.match(run("replay", trace), /1 decisions compared: all identical/);
      const example = join(installed.folder, "example.mjs");
      copyFileSync(join(ROOT, "deploy/package/example.mjs"), example);
      const decided = execFileSync(node.path, [example], { encoding: "utf8", env });
      assert.match(decided, /^([abc]) \1 48 prefix-affinity$/m);
    });
  }

  for (const node of NODES.filter((one) => !isAdmitted(one))) {
    test(`on Node ${node.version} it ends with what is missing`, () => {
      assert.throws(
        () => execFileSync(node.path, [installed.command, "--version"], { stdio: "pipe", encoding: "utf8" }),
        ({ status, stderr }: { status: number; stderr: string }) =>
          status === 1 && stderr.startsWith(`gnomon: expected Node ${OLDEST} or later, got ${node.version}`),
      );
    });
  }
});
