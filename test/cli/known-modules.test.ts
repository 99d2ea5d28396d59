import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync, globSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { resolve } from "node:path";
import { describe, test } from "node:test";
import { fileURLToPath, pathToFileURL } from "node:url";
import { knownModule } from "../../bin/known-modules.js";

const ROOT = resolve(import.meta.dirname, "../..");
const IMPORTED = /(?:\bfrom\s+|\bimport\s+|\bimport\(|\brequire\()["']([#.][^"']*)["']/g;

/** Of each file that the pattern names, what it imports by a name that begins with # or a dot. */
function imported(pattern: string): { readonly file: string; readonly specifier: string }[] {
  return globSync(pattern, { cwd: ROOT }).flatMap((name) => {
    const file = resolve(ROOT, name);
    return [...readFileSync(file, "utf8").matchAll(IMPORTED)].map(([, specifier]) => ({ file, specifier: specifier! }));
  });
}

describe("modules that are known by their names", () => {
  test("are those that Node finds, for all that the sources import", () => {
    const all = imported("src/{cli,config,engine,sim,trace,serve}/**/*.ts");
    assert.ok(all.length > 1_000, `${all.length}`);
    for (const { file, specifier } of all) {
      const known = knownModule(specifier, pathToFileURL(file).href);
      assert.equal(fileURLToPath(known!.url), createRequire(file).resolve(specifier), `${specifier} of ${file}`);
      assert.equal(known!.format, "module-typescript");
    }
  });

  test("are files that are there, for all that the packages of many files import", () => {
    const all = [...imported("node_modules/zod/v4/**/*.js"), ...imported("node_modules/yaml/dist/**/*.js")];
    assert.ok(all.length > 400, `${all.length}`);
    for (const { file, specifier } of all) {
      const known = knownModule(specifier, pathToFileURL(file).href);
      // What is not known is left to Node.
      if (known !== undefined) assert.ok(existsSync(fileURLToPath(known.url)), `${specifier} of ${file}`);
    }
  });

  test("zod's messages are in English still, without the other languages", () => {
    const zod = pathToFileURL(resolve(ROOT, "node_modules/zod/v4/core/index.js")).href;
    assert.match(knownModule("../locales/index.js", zod)!.url, /\/bin\/no-locales\.js$/);
    assert.match(knownModule("../locales/en.js", zod)!.url, /\/node_modules\/zod\/v4\/locales\/en\.js$/);
  });

  test("what undici and prom-client have for others is left out, and what gnomon uses of them is there", () => {
    const undici = pathToFileURL(resolve(ROOT, "node_modules/undici/index.js")).href;
    const cpu = pathToFileURL(resolve(ROOT, "node_modules/prom-client/lib/metrics/processCpuTotal.js")).href;
    const leftOut = /\/bin\/left-out\.cjs$/;
    assert.match(knownModule("./lib/web/fetch", undici)!.url, leftOut);
    assert.match(knownModule("@opentelemetry/api", cpu)!.url, leftOut);
    assert.equal(knownModule("./lib/dispatcher/client", undici), undefined);
    assert.equal(knownModule("@opentelemetry/api", pathToFileURL(resolve(ROOT, "src/main.ts")).href), undefined);
    // Loaded as a command loads them: nothing of what is left out is needed on the way.
    const script = `
      const { resolveKnownModules } = await import(${JSON.stringify(resolve(ROOT, "bin/known-modules.js"))});
      resolveKnownModules();
      const { Agent, Client, Pool, ProxyAgent, request, buildConnector } = await import("undici");
      const { createServer } = await import("node:http");
      const server = createServer((_, reply) => reply.end("answer")).listen(0);
      await new Promise((ready) => server.once("listening", ready));
      const origin = "http://127.0.0.1:" + server.address().port;
      for (const make of [() => new Agent(), () => new Pool(origin), () => new Client(origin)]) {
        const dispatcher = make();
        const { body } = await request(origin, { dispatcher });
        console.log(await body.text());
        await dispatcher.close();
      }
      console.log(typeof ProxyAgent, typeof buildConnector);
      server.close();
      const { collectDefaultMetrics, Registry } = await import("prom-client");
      const register = new Registry();
      collectDefaultMetrics({ register });
      console.log(/process_cpu_user_seconds_total/.test(await register.metrics()));
      process.exit(0);`;
    const { stdout, stderr } = spawnSync(process.execPath, ["--input-type=module", "-e", script], {
      cwd: ROOT,
      encoding: "utf8",
    });
    assert.equal(stdout, "answer\nanswer\nanswer\nfunction function\ntrue\n", stderr);
  });

  test("leave to Node packages, its own modules, and whatever others import", () => {
    const main = pathToFileURL(resolve(ROOT, "src/main.ts")).href;
    const other = pathToFileURL(resolve(ROOT, "node_modules/undici/index.js")).href;
    for (const specifier of ["zod", "node:fs", "@grpc/grpc-js", "/x.js"])
      assert.equal(knownModule(specifier, main), undefined);
    for (const specifier of ["./lib/x.js", "#x", "../x"]) assert.equal(knownModule(specifier, other), undefined);
    assert.equal(knownModule("./src/main.ts", undefined), undefined);
  });
});
