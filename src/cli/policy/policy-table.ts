import Table from "cli-table3";
import type { PolicyHistory } from "#live/admin/policy-admin.ts";

/** Versions and refused changes, newest first. */
export function historyTable({ versions, refused, forgotten }: PolicyHistory): string {
  const table = new Table({
    head: ["version", "at", "source", "by", "profile", "note"],
    style: { head: [], border: [] },
  });
  for (const { version, at, source, by, defaultProfile, note } of versions) {
    table.push([version, at, source, by, defaultProfile, note]);
  }
  const lines = [table.toString()];
  if (forgotten > 0) lines.push(`${forgotten} older versions are not remembered (policy.historyMax)`);
  if (refused.length > 0) lines.push("Refused, nothing changed:");
  for (const { at, source, by, problems } of refused) {
    lines.push(`  ${at} ${source}${by === "" ? "" : ` ${by}`}`, ...problems.map((line) => `    ${line}`));
  }
  return `${lines.join("\n")}\n`;
}
