import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { test } from "node:test";
import { parse } from "yaml";

const ROOT = resolve(import.meta.dirname, "../..");

interface Step {
  readonly name?: string;
  readonly uses?: string;
  readonly run?: string;
  readonly with?: Readonly<Record<string, string | boolean>>;
}

interface Workflow {
  readonly jobs: Readonly<Record<string, { readonly needs?: string; readonly steps: readonly Step[] }>>;
}

const { jobs } = parse(readFileSync(join(ROOT, ".github/workflows/release.yml"), "utf8")) as Workflow;
const { version } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8")) as { version: string };

test("nothing is released before everything was checked", () => {
  assert.ok(jobs["check"]!.steps.some(({ run }) => run === ".ci/run"));
  for (const [name, { needs }] of Object.entries(jobs)) if (name !== "check") assert.equal(needs, "check", name);
});

test("the tag has to be the version of package, chart and changelog, and is today", (t) => {
  const step = jobs["check"]!.steps.find(({ run }) => run?.includes("GITHUB_REF_NAME"))!;
  const folder = mkdtempSync(join(tmpdir(), "gnomon-release-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  for (const name of ["package.json", "CHANGELOG.md", "deploy/helm/Chart.yaml"])
    cpSync(join(ROOT, name), join(folder, name));
  const check = (tag: string): void => {
    const env = { PATH: process.env["PATH"] ?? "", GITHUB_REF_NAME: tag };
    execFileSync("bash", ["-e", "-c", step.run!], { cwd: folder, env, stdio: "pipe" });
  };
  check(`v${version}`);
  assert.throws(() => check("v9.9.9"));
});

test("the image is for both architectures, with a list of what is inside and where it was made", () => {
  const build = jobs["image"]!.steps.find(({ uses }) => uses?.startsWith("docker/build-push-action"))!.with!;
  assert.deepEqual(
    [build["platforms"], build["sbom"], build["provenance"]],
    ["linux/amd64,linux/arm64", true, "mode=max"],
  );
  assert.ok(existsSync(join(ROOT, String(build["file"]))));
});

test("the chart that is released names the image by its digest", (t) => {
  const step = jobs["image"]!.steps.find(({ run }) => run?.includes("helm package"))!;
  const [command = ""] = step.run!.split("\n");
  const folder = mkdtempSync(join(tmpdir(), "gnomon-release-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  cpSync(join(ROOT, "deploy/helm"), join(folder, "deploy/helm"), { recursive: true });
  const digest = `sha256:${"b".repeat(64)}`;
  const env = { PATH: process.env["PATH"] ?? "", IMAGE: "ghcr.io/x/gnomon", DIGEST: digest };
  execFileSync("bash", ["-e", "-c", command], { cwd: folder, env });
  const values = parse(readFileSync(join(folder, "deploy/helm/values.yaml"), "utf8")) as {
    image: { repository: string; digest: string };
    redis: { image: string };
  };
  assert.deepEqual([values.image.repository, values.image.digest], ["ghcr.io/x/gnomon", digest]);
  assert.equal(values.redis.image, "redis:8");
});
