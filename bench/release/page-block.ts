import { stripVTControlCharacters } from "node:util";

/**
 * A marked block of a page, which `npm run bench -- release` writes:
 *
 *     <!-- release: tenants --rate 16 -->
 *     Where and when it was measured, and what the command printed.
 *     <!-- /release -->
 *
 * The first word is a bench, or `gnomon` for a command of the program. $NAME stands for a variable of the environment.
 * Behind ` | grep ` may stand a regular expression: only lines with a match are written, and heads of tables that have some.
 */
export interface PageBlock {
  /** As it stands in the mark. */
  readonly command: string;
  /** What is run of it. */
  readonly words: readonly string[];
  /** What is between the marks now. */
  readonly text: string;
}

/** Where figures come from. */
export interface Origin {
  readonly commit: string;
  readonly date: string;
  readonly machine: string;
}

/** So that a page stays one that somebody reads. */
const BLOCK_LINES_MAX = 60;
const LINE_CHARS_MAX = 160;
const BLOCK = /^<!-- release: (.+) -->\n([\s\S]*?)^<!-- \/release -->$/gm;

/** All blocks of a page, in order. */
export function blocksOf(page: string): PageBlock[] {
  return [...page.matchAll(BLOCK)].map(([, command, text]) => ({
    command: command!,
    words: parted(command!).run.split(" "),
    text: text!,
  }));
}

/** The commit that a block's figures are of; undefined where it has none yet. */
export function commitOf({ text }: PageBlock): string | undefined {
  return /^Measured at `([^`]+)`/m.exec(text)?.[1];
}

/** The page with what the command of one of its blocks printed; all else stays. */
export function withFigures(page: string, command: string, printed: string, origin: Origin): string {
  const { run, pattern } = parted(command);
  const kept = pattern === undefined ? printed : matching(printed, new RegExp(pattern));
  const body = `${provenance(run, origin)}\n\n${asMarkdown(kept)}\n`;
  return page.replaceAll(BLOCK, (whole, words: string) =>
    words === command ? `<!-- release: ${words} -->\n${body}<!-- /release -->` : whole,
  );
}

function parted(command: string): { readonly run: string; readonly pattern: string | undefined } {
  const [run = "", pattern] = command.split(" | grep ");
  return { run, pattern };
}

/** The lines with a match, and the head of each table of which a row has one. */
function matching(printed: string, pattern: RegExp): string {
  const lines = printed.split("\n");
  const isRow = (at: number) => lines[at]?.startsWith("|") === true;
  const isHead = (at: number) => isRow(at) && (!isRow(at - 1) || /^\|[\s|:-]+$/.test(lines[at]!));
  return lines
    .filter((line, at) => {
      if (line === "" || (!isHead(at) && pattern.test(line))) return true;
      if (!isHead(at)) return false;
      for (let row = at; isRow(row); row++) if (!isHead(row) && pattern.test(lines[row]!)) return true;
      return false;
    })
    .join("\n");
}

function provenance(command: string, { commit, date, machine }: Origin): string {
  const words = command.split(" ").map((word) => (word.includes("*") ? `'${word}'` : word));
  const run = [command.startsWith("gnomon ") ? "npx" : "npm run bench --", ...words].join(" ");
  return `Measured at \`${commit}\`, ${date}, ${machine}:\n\n\`\`\`sh\n${run}\n\`\`\``;
}

/** Tables as they are; other lines in a block, as they were printed. */
function asMarkdown(printed: string): string {
  const plain = stripVTControlCharacters(printed).trimEnd();
  const all = plain.split("\n").map((line) => line.trimEnd());
  const lines = all
    .slice(0, BLOCK_LINES_MAX)
    .map((line) => (line.length > LINE_CHARS_MAX ? `${line.slice(0, LINE_CHARS_MAX)}...` : line));
  if (all.length > lines.length) lines.push(`... ${all.length - lines.length} more lines`);
  const out: string[] = [];
  let isFenced = false;
  const fence = (on: boolean) => {
    if (on === isFenced) return;
    isFenced = on;
    if (on && out.length > 0 && out.at(-1) !== "") out.push("");
    out.push("```");
    if (!on) out.push("");
  };
  for (const [at, line] of lines.entries()) {
    const next = lines.slice(at + 1).find((one) => one !== "") ?? "";
    if (line.startsWith("|")) fence(false);
    else if (line !== "") fence(true);
    else if (next.startsWith("|") || next === "") fence(false);
    if (line === "" && (out.at(-1) ?? "") === "") continue;
    out.push(line);
  }
  fence(false);
  return out.join("\n").trimEnd();
}
