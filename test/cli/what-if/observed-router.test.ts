import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { whatIfCommand } from "#cli/what-if/what-if.ts";
import { loadProfile } from "#config/profile-file.ts";
import type { WhatIfAnswer } from "#shadow/question/what-if.ts";
import { TraceWriter } from "#trace/export/trace-writer.ts";
import { foreignTraffic } from "../../shadow/reproduce/foreign-traffic.ts";
import { temporaryFolder } from "../../trace/import/temporary-folder.ts";
import { inProcess } from "../in-process.ts";

const ASKED = [
  "--engine",
  "emulated-default",
  "--step-error",
  "0.05",
  "--replicas",
  "3",
  "--profile",
  "gnomon",
  "--no-cache",
];

test("of another router's traffic the first row is what was measured, and the policy in force what explains its decisions", async (t) => {
  await using folder = await temporaryFolder();
  const path = join(folder.path, "theirs");
  const writer = new TraceWriter(path);
  const traffic = { spec: loadProfile("round-robin").spec, requests: 120, seed: 5, routerName: "their-router" };
  for (const item of foreignTraffic(traffic)) await writer.write(item);
  await writer.close();
  const file = join(folder.path, "answer.json");
  const table = await inProcess(t, [whatIfCommand()], ["what-if", path, ...ASKED, "--all", "--json", file]);
  assert.equal(table.code, 0, table.said);
  assert.match(
    table.out.replaceAll("\n", " "),
    /^Mean E2E under their-router, measured: \d+ ms\. Under gnomon instead: \d+ ms \(90 %: /,
  );
  assert.match(table.out, /their-router,\s/);
  assert.match(table.notes, /note: their-router decides as round-robin/);
  const { inForce, measured, candidates } = JSON.parse(readFileSync(file, "utf8")) as WhatIfAnswer;
  assert.equal(inForce, "their-router (as round-robin)");
  assert.deepEqual(candidates.map(({ name }) => name).sort(), ["gnomon", "their-router (as round-robin)"]);
  // Each answer takes from 0.2 to 1 s behind its first token.
  assert.ok(measured!.e2eMicros!.mean > 500_000 && measured!.e2eMicros!.mean < 3_000_000);
});
