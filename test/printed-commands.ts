import { spawnSync } from "node:child_process";

/** A block of a document: what stands between two fences, under which heading. */
export interface PrintedBlock {
  readonly heading: string;
  readonly language: string;
  readonly text: string;
}

/** The blocks of a Markdown document, in order. */
export function printedBlocks(markdown: string): PrintedBlock[] {
  const blocks: PrintedBlock[] = [];
  let heading = "";
  for (const [, title, language, text] of markdown.matchAll(/^#+ (.+)$|^```(\w*)\n([\s\S]*?)^```$/gm)) {
    if (title === undefined) blocks.push({ heading, language: language ?? "", text: text ?? "" });
    else heading = title;
  }
  return blocks;
}

/** The commands of a block of shell, one element each, however many lines they take. */
export function commandsOf(text: string): string[] {
  const commands: string[] = [];
  let command = "";
  for (const line of text.split("\n")) {
    command += command === "" ? line : `\n${line}`;
    if (command.trim() === "" || line.endsWith("\\") || !isWhole(command)) continue;
    commands.push(command);
    command = "";
  }
  return commands;
}

function isWhole(command: string): boolean {
  return spawnSync("bash", ["-n", "-c", command], { stdio: "ignore" }).status === 0;
}
