import { stringify } from "yaml";
import { environmentNameOf } from "./override.ts";
import { pathText } from "./problem.ts";
import { CONFIG_SCHEMA } from "./schema.ts";
import { expectation, schemaNode, type Path, type SchemaNode } from "./schema-node.ts";

/** One key of the configuration, for people. */
export interface KeyRow {
  readonly key: string;
  /** Environment variable that sets it; "" for keys inside a list or a free mapping. */
  readonly variable: string;
  readonly accepts: string;
  /** Default as YAML; "" where there is none. */
  readonly default: string;
  readonly meaning: string;
}

/** Every key, in the schema's order. */
export function describeKeys(): KeyRow[] {
  return rowsOf(schemaNode(CONFIG_SCHEMA), [], true);
}

function rowsOf(node: SchemaNode, path: Path, settable: boolean): KeyRow[] {
  const fixed = Object.entries(node.properties ?? {}).flatMap(([key, child]) =>
    rowsOf(child, [...path, key], settable),
  );
  if (node.properties !== undefined) return fixed;
  const row: KeyRow = {
    key: pathText(path).replaceAll("[0]", "[]"),
    variable: settable ? environmentNameOf(path) : "",
    accepts: expectation(node),
    default: node.default === undefined ? "" : stringify(node.default, { collectionStyle: "flow" }).trim(),
    meaning: node.description ?? "",
  };
  const inside = node.items ?? (typeof node.additionalProperties === "object" ? node.additionalProperties : undefined);
  const below =
    inside?.properties === undefined ? [] : rowsOf(inside, [...path, node.items === undefined ? "NAME" : 0], false);
  return [row, ...below];
}

/** The table as Markdown. */
export function describeAsMarkdown(): string {
  const cell = (text: string) => text.replaceAll("|", "\\|");
  const rows = describeKeys().map(
    (row) =>
      `| \`${row.key}\` | ${row.default === "" ? "" : `\`${row.default}\``} | ${cell(row.accepts)} | ${cell(row.meaning)} |`,
  );
  return ["| key | default | accepts | meaning |", "|---|---|---|---|", ...rows, ""].join("\n");
}

/** A configuration file with every key at its default and its meaning beside it; keys without a default are comments. */
export function describeAsYaml(): string {
  const lines: string[] = ["# Every key of the configuration with its default. Generated: npx gnomon config --default"];
  writeSection(schemaNode(CONFIG_SCHEMA), 0, lines);
  return `${lines.join("\n")}\n`;
}

function writeSection(node: SchemaNode, depth: number, lines: string[]): void {
  const indent = "  ".repeat(depth);
  for (const [key, child] of Object.entries(node.properties ?? {})) {
    if (depth === 0) lines.push("", `# ${child.description ?? ""}`);
    if (child.properties !== undefined) {
      lines.push(`${indent}${key}:`);
      writeSection(child, depth + 1, lines);
      continue;
    }
    if (depth > 0) lines.push(`${indent}# ${child.description ?? ""} ${capitalized(expectation(child))}.`);
    if (child.default === undefined) lines.push(`${indent}# ${key}:`);
    else lines.push(`${indent}${key}: ${stringify(child.default, { collectionStyle: "flow" }).trim()}`);
    writeShape(child, `${indent}# `, lines);
  }
}

/** What one element of a list looks like, or what a name of a free mapping stands for, as comments. */
function writeShape(node: SchemaNode, margin: string, lines: string[]): void {
  const isList = node.items !== undefined;
  const inside = node.items ?? (typeof node.additionalProperties === "object" ? node.additionalProperties : undefined);
  if (inside === undefined) return;
  const first = isList ? "  - " : "  NAME: ";
  if (inside.properties === undefined) {
    const below = inside.items ?? inside.additionalProperties;
    if (typeof below !== "object" && inside.type === undefined && inside.expected === undefined) return;
    lines.push(`${margin}${first}${expectation(inside)}`);
    return;
  }
  if (!isList) lines.push(`${margin}${first.trimEnd()}`);
  for (const [i, [key, child]] of Object.entries(inside.properties).entries()) {
    const lead = isList && i === 0 ? first : "    ";
    const needed = inside.required?.includes(key) === true && child.default === undefined ? "; needed" : "";
    lines.push(`${margin}${lead}${key}: ${expectation(child)}${needed}`);
  }
}

function capitalized(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
