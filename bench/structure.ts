/**
 * What a reader meets in the source: its size, how much of it is names of types, files that serve one other file alone, how
 * far a feature is spread, and folders that import one another in a circle. One table, in Markdown, in a few seconds.
 *
 *     npm run bench -- structure [--root CHECKOUT] [--no-chat] [--chat-files]
 *
 * With --root another checkout is measured, for a comparison. Without --no-chat a gateway is started and asked for
 * streamed chats, to count what one touches; --chat-files lists those files with their functions instead of the table.
 */
import { resolve } from "node:path";
import { parseArgs } from "node:util";
import { folderCycles } from "./structure/folder-cycles.ts";
import { documentWords, sourceFiles } from "./structure/source-files.ts";
import { singleImporters } from "./structure/single-importers.ts";
import { touchedByChat } from "./structure/touched-by-chat.ts";

/** What of a file's path or text names a feature. */
const FEATURES: Readonly<Record<string, RegExp>> = {
  hedging: /hedg/i,
  // Not Kubernetes' allowPrivilegeEscalation.
  cascade: /cascad|(?<!privilege)escalat/i,
  // Its folders have the name of its stage; engines compute prompts without it.
  "prefill and decode apart": /disaggregat|hand-?off|prefill-?elsewhere|remote-?prefill|\/prefill\//i,
  continuation: /continuation|request-?continued|continueStreams/i,
  rollout: /rollout/i,
};

const { values } = parseArgs({
  options: {
    root: { type: "string", default: resolve(import.meta.dirname, "..") },
    chat: { type: "boolean", default: true },
    "chat-files": { type: "boolean", default: false },
  },
  allowNegative: true,
});
if (values["chat-files"]) {
  const touched = await touchedByChat(resolve(values.root));
  for (const [path, functions] of [...touched].toSorted(([one], [other]) => (one < other ? -1 : 1)))
    process.stdout.write(`${path}: ${functions.join(" ")}\n`);
  process.exit();
}
const files = sourceFiles(values.root);
const lines = files.map((file) => file.lines).sort((a, b) => a - b);
const total = lines.reduce((sum, count) => sum + count, 0);
const types = files.reduce((sum, file) => sum + file.types, 0);
const { single, sameFolder } = singleImporters(files);

const rows: string[][] = [
  ["lines / files / median of src", `${total} / ${files.length} / ${lines[Math.floor(lines.length / 2)] ?? 0}`],
  ["named types per 1,000 lines", ((1000 * types) / total).toFixed(1)],
  ["files with one importer (in the same folder)", `${single} (${sameFolder})`],
];
if (values.chat) {
  const touched = await touchedByChat(resolve(values.root));
  const functions = [...touched.values()].flat().length;
  rows.push(["one streamed chat touches", `${functions} functions in ${touched.size} files`]);
}
for (const [feature, pattern] of Object.entries(FEATURES)) {
  const naming = files.filter(({ path, text }) => pattern.test(path) || pattern.test(text)).length;
  rows.push([`files naming ${feature}`, String(naming)]);
}
for (const { top, folders, byValue, byType } of folderCycles(files)) {
  rows.push([`folders of ${top} in cycles by value; by type; of`, `${byValue}; ${byType}; ${folders}`]);
}
rows.push(["words of documents, all; in bench", documentWords(values.root).join("; ")]);

process.stdout.write(`| | |\n|---|---:|\n${rows.map((cells) => `| ${cells.join(" | ")} |\n`).join("")}`);
