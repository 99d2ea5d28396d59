import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtempSync, openSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { gnomon, ownEnvironment } from "./command-line.ts";

test("a command whose reader leaves ends as it would have, with its files written", async (t) => {
  const folder = mkdtempSync(join(tmpdir(), "gnomon-pipe-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const file = join(folder, "results.json");
  const simulate = ["simulate", "--workload", "chatbot", "--num-requests", "20", "--results-path", file];
  const commands: readonly string[][] = [["--help"], ["config", "--describe"], ["profiles"], simulate];
  for (const argv of commands) {
    const running = gnomon(t, argv);
    const { child, exit } = running;
    child.stdout.destroy();
    assert.deepEqual(await exit, { code: 0, signal: null }, `${argv.join(" ")}: ${running.stderr()}`);
    assert.doesNotMatch(running.stderr(), /EPIPE|Error/, argv.join(" "));
  }
  assert.ok(readFileSync(file).length > 0);
});

test("a mistake shows in the exit code also where nobody listens", async (t) => {
  const { child, exit } = gnomon(t, ["trace", "info", "nowhere"]);
  child.stderr.destroy();
  assert.deepEqual(await exit, { code: 2, signal: null });
});

test("output that a full disk refuses is one line on standard error and an exit code, not a stack", () => {
  const bin = join(import.meta.dirname, "../../bin/gnomon.js");
  for (const argv of [["profiles"], ["simulate", "--num-requests", "20", "--json"]]) {
    const full = openSync("/dev/full", "w");
    const { status, stderr } = spawnSync(process.execPath, [bin, ...argv], {
      stdio: ["ignore", full, "pipe"],
      env: ownEnvironment(),
      encoding: "utf8",
    });
    assert.equal(status, 1, stderr);
    assert.match(stderr, /^gnomon: standard output: no space left on device$/m);
    assert.doesNotMatch(stderr, / at |Error/);
  }
});
