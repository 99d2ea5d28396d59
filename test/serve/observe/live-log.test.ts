import assert from "node:assert/strict";
import fs, { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { openLog } from "#serve/observe/live-log.ts";

test("a log on a full disk ends nothing: its lines are dropped and counted, and come again once there is room", (t) => {
  const folder = mkdtempSync(join(tmpdir(), "gnomon-log-"));
  t.after(() => rmSync(folder, { recursive: true }));
  const path = join(folder, "log");
  const fd = openSync(path, "a");
  t.after(() => closeSync(fd));
  const { log, dropped } = openLog({ level: "info", access: "off" }, fd);
  log.info("first");
  const full = t.mock.method(fs, "writeSync", () => {
    throw Object.assign(new Error("ENOSPC: no space left on device, write"), { code: "ENOSPC" });
  });
  for (let i = 0; i < 20; i++) log.info("refused");
  assert.equal(dropped(), 20);
  full.mock.restore();
  log.info("last");
  assert.equal(dropped(), 20);
  const lines = readFileSync(path, "utf8").trimEnd().split("\n");
  const messages = lines.map((line) => (JSON.parse(line) as { readonly msg: string }).msg);
  assert.deepEqual(messages, ["first", "last"]);
});
