import assert from "node:assert/strict";
import { test } from "node:test";
import { driveOptions, type DriveFlags } from "#drive/flags.ts";
import { ImportError } from "#trace/import/import-report.ts";
import { workloadFile, workloadNames } from "#trace/import/named-workload.ts";
import { openWorkload } from "#trace/import/open-workload.ts";
import { IMPORT_DEFAULTS } from "#trace/import/import-options.ts";

test("every workload that comes with gnomon is found by its name, and reads", async () => {
  assert.ok(workloadNames().includes("chatbot"));
  for (const name of workloadNames()) {
    const { requests } = await openWorkload(workloadFile(name), IMPORT_DEFAULTS);
    assert.equal((await requests.next()).done, false, name);
  }
});

test("a path stays a path, a file without an ending is found, and what is neither is refused with the names", () => {
  assert.equal(workloadFile("./chatbot"), "./chatbot");
  assert.equal(workloadFile("LICENSE"), "LICENSE", "a file beside package.json, where tests run");
  assert.throws(
    () => workloadFile("chatbat"),
    (error) =>
      error instanceof ImportError && error.message.includes("one of chatbot, ") && error.message.includes('"chatbat"'),
  );
});

test("drive finds by --spec what simulate finds by --workload-spec", () => {
  const flags = { url: ["http://h"], header: {}, expect: [] } as unknown as DriveFlags;
  const found = driveOptions({ ...flags, spec: "chatbot" }, {});
  assert.equal(typeof found === "string" ? found : found.workload, workloadFile("chatbot"));
  const refused = driveOptions({ ...flags, spec: "chatbat" }, {});
  assert.match(typeof refused === "string" ? refused : "", /expected the path of a file, or one of chatbot/);
});
