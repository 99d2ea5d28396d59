import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { chmodSync, cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { after, describe, test } from "node:test";
import { parseDocument, stringify } from "yaml";
import { ownEnvironment, started } from "../cli/command-line.ts";
import { assertServes, assertStops } from "./served-request.ts";

const ROOT = resolve(import.meta.dirname, "../..");
const CONFIG = "/etc/gnomon/config.yaml";
/** Of what the image has beside its base and Node. */
const MIB_MAX = 150;

/** A step of the Dockerfile: its word, and all behind it in one line. */
interface Step {
  readonly word: string;
  readonly rest: string;
}

const steps = readFileSync(join(ROOT, "deploy/Dockerfile"), "utf8")
  .replaceAll(/^#.*\n/gm, "")
  .replaceAll("\\\n", " ")
  .split("\n")
  .filter((line) => line.trim() !== "")
  .map((line): Step => ({ word: line.replace(/ .*/, ""), rest: line.replace(/^\w+ +/, "") }));
const second = steps.findLastIndex(({ word }) => word === "FROM");
const building = steps.slice(0, second);
const image = steps.slice(second);
const restOf = (word: string): string => image.findLast((step) => step.word === word)!.rest;
const list = (text: string): string[] => (parseDocument(text).toJS() as string[]).map(String);

/**
 * The image's files, made by the Dockerfile's own steps without an engine of containers: its commands run with a folder in
 * place of the root, and what `npm ci` would fetch is copied from what this project has installed.
 */
class Tree {
  readonly root = mkdtempSync(join(tmpdir(), "gnomon-image-"));
  readonly #tools = join(this.root, "tools");

  constructor() {
    mkdirSync(this.#tools);
    const npm = join(this.#tools, "npm");
    const real = execFileSync("sh", ["-c", "command -v npm"], { encoding: "utf8" }).trim();
    const standIn = join(import.meta.dirname, "npm-without-registry.ts");
    writeFileSync(npm, `#!/bin/sh\nexec "${process.execPath}" "${standIn}" "${real}" "$@"\n`);
    chmodSync(npm, 0o755);
    let cwd = this.root;
    for (const { word, rest } of building) {
      if (word === "WORKDIR") mkdirSync((cwd = join(this.root, rest)), { recursive: true });
      else if (word === "COPY") this.#copy(rest.split(" "), cwd);
      else if (word === "RUN") this.#run(rest, cwd);
      else assert.match(word, /^(?:FROM|ARG)$/);
    }
  }

  /** A path of the image in this tree; the image's Node is this one. */
  place(text: string): string {
    return text
      .replaceAll(/(?<![\w.])\/(?=(?:app|build|package)\b)/g, `${this.root}/`)
      .replaceAll("/usr/local/bin/node", process.execPath);
  }

  #copy(names: readonly string[], cwd: string): void {
    for (const name of names.slice(0, -1)) {
      assert.ok(isInContext(name), `${name} is not in the context of the build`);
      const to = names.length > 2 ? join(cwd, names.at(-1)!, name) : join(cwd, names.at(-1)!);
      cpSync(join(ROOT, name), to, { recursive: true });
    }
  }

  #run(script: string, cwd: string): void {
    const path = [this.#tools, dirname(process.execPath), process.env["PATH"]].join(":");
    const env = { ...ownEnvironment(), PATH: path, TARGETARCH: process.arch === "arm64" ? "arm64" : "amd64" };
    execFileSync("sh", ["-euc", this.place(script)], { cwd, env, stdio: "pipe" });
  }
}

/** What Dockerfile.dockerignore lets through. */
function isInContext(name: string): boolean {
  const [all, ...kept] = readFileSync(join(ROOT, "deploy/Dockerfile.dockerignore"), "utf8").trim().split("\n");
  assert.equal(all, "*");
  return kept.includes(`!${name}`);
}

describe("the image", { skip: process.platform === "linux" ? false : "its libraries are those of Linux" }, () => {
  const tree = new Tree();
  after(() => rmSync(tree.root, { recursive: true, force: true }));
  const variables = image.filter(({ word }) => word === "ENV").flatMap(({ rest }) => rest.split(" "));
  const env = Object.fromEntries(variables.map((one) => one.split("=") as [string, string]));
  const cwd = tree.place(restOf("WORKDIR"));
  const entry = list(tree.place(restOf("ENTRYPOINT")));

  test("is made of what the package names, and of nothing that only development needs", () => {
    for (const name of ["typescript", "fast-check", "node"])
      assert.ok(!existsSync(join(cwd, "node_modules", name)), name);
    assert.ok(existsSync(join(cwd, "sbom.spdx.json")));
    const kib = Number(/^\d+/.exec(execFileSync("du", ["-sk", cwd], { encoding: "utf8" }))![0]);
    assert.ok(kib < MIB_MAX * 1024, `${Math.round(kib / 1024)} MiB`);
  });

  test("serves by its own command, is healthy, and stops", async (t) => {
    const file = join(tree.root, "config.yaml");
    writeFileSync(
      file,
      stringify({ listen: { port: 0, warmUpMillis: 0 }, picker: { port: 0 }, emulate: { count: 1 } }),
    );
    const command = list(restOf("CMD"));
    assert.ok(command.includes(CONFIG));
    const served = started(t, [...entry, ...command.map((word) => (word === CONFIG ? file : word))], { env, cwd });
    const url = await assertServes(served);
    const [, probe = ""] = /CMD (\[.*\])$/.exec(restOf("HEALTHCHECK"))!;
    const asked = list(tree.place(probe)).map((word) => word.replace("http://127.0.0.1:8080", url));
    const healthy = started(t, asked, { env, cwd });
    assert.deepEqual(await healthy.exit, { code: 0, signal: null }, healthy.stderr());
    await assertStops(served);
    const dead = started(t, asked, { env, cwd });
    assert.deepEqual(await dead.exit, { code: 1, signal: null }, "a gateway that is gone is not healthy");
  });

  test("loads every package that it states, also those with code of their own for the platform", async (t) => {
    const { dependencies } = JSON.parse(readFileSync(join(cwd, "package.json"), "utf8")) as { dependencies: object };
    const script = Object.keys(dependencies).map((name) => `await import("${name}");`);
    const loaded = started(t, [entry[0]!, "--input-type=module", "-e", script.join("\n")], { env, cwd });
    assert.deepEqual(await loaded.exit, { code: 0, signal: null }, loaded.stderr());
  });

  test("runs the other commands too", async (t) => {
    const helped = started(t, [...entry, "--help"], { env, cwd });
    assert.deepEqual(await helped.exit, { code: 0, signal: null }, helped.stderr());
    const simulated = started(t, [...entry, "simulate", "--num-requests", "5"], { env, cwd });
    assert.deepEqual(await simulated.exit, { code: 0, signal: null }, simulated.stderr());
  });
});
