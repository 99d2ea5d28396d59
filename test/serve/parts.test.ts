import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { GATEWAY } from "#serve/parts.ts";

const DOCUMENT = readFileSync(join(import.meta.dirname, "../../ARCHITECTURE.md"), "utf8");

test("ARCHITECTURE.md has the table of parts as it is", () => {
  const names = new Set(GATEWAY.parts.map(({ name }) => name));
  const rows = GATEWAY.parts.map(({ name, needs, drain, stop, settings = [] }) => {
    const ends = [...(drain ? ["drains"] : []), ...(stop ? ["stops"] : [])].join(", ");
    const others = needs.filter((need) => names.has(need)).join(" ");
    return `| ${name} | ${others} | ${ends} | ${settings.map((one) => `\`${one}\``).join(" ")} |`;
  });
  const table = ["| part | needs | at the end | changes live |", "|---|---|---|---|", ...rows].join("\n");
  assert.ok(DOCUMENT.includes(`${table}\n`), `ARCHITECTURE.md is to have this table:\n${table}\n`);
});
