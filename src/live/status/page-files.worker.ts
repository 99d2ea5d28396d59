import { globSync, readFileSync } from "node:fs";
import { stripTypeScriptTypes } from "node:module";
import { extname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { parentPort } from "node:worker_threads";
import { PAGE_LIBRARY } from "./page-files.ts";

/** Where the code of the page is, which the browser runs as it is written, without its types. */
const ROOT = resolve(import.meta.dirname, "../../page");
/** Sources end as this file does: in a package their types are gone already. */
const ENDING = extname(import.meta.filename);

// Types become spaces, so that lines and columns stay. Node announces that this function of its own may still change: this
// program is read by the same code, so there is nothing in that for who runs it.
process.emitWarning = () => {};

const names = globSync(`**/*${ENDING}`, { cwd: ROOT, exclude: (name) => name.endsWith(".d.ts") });
const own = names.map((name): [string, string] => {
  const text = readFileSync(join(ROOT, name), "utf8");
  return [name, ENDING === ".ts" ? stripTypeScriptTypes(text) : text];
});
parentPort!.postMessage([...own, [PAGE_LIBRARY, libraryText()]]);

/** Its last line names a file for debuggers that is not served. */
function libraryText(): string {
  const text = readFileSync(fileURLToPath(import.meta.resolve("preact")), "utf8");
  return text.replace(/\n?\/\/# sourceMappingURL=.*\s*$/, "\n");
}
