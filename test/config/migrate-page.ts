import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestContext } from "node:test";

export const MIGRATE_PAGE = readFileSync(join(import.meta.dirname, "../../docs/migrate.md"), "utf8");
export const SOURCES = ["llm-d", "production-stack", "SMG", "LiteLLM", "nginx"];

/** A block of the page, by its first line. */
export function block(whose: "theirs" | "ours", name: string): string {
  const text = [...MIGRATE_PAGE.matchAll(/```\w+\n([\s\S]*?)```/g)].find(([, body]) =>
    body!.startsWith(`# ${whose}: ${name}\n`),
  );
  assert.ok(text?.[1] !== undefined, `${whose}: ${name}`);
  return text[1];
}

/** A file with the page's configuration of ours, beside the file of theirs that it names. */
export function oursFile(t: TestContext, name: string): string {
  const folder = mkdtempSync(join(tmpdir(), "gnomon-migrate-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const epp = join(folder, "epp.yaml");
  writeFileSync(epp, block("theirs", "llm-d"));
  const file = join(folder, "config.yaml");
  writeFileSync(file, block("ours", name).replace("epp.yaml", epp));
  return file;
}
