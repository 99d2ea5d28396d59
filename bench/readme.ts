/**
 * README.md walked command by command on several versions of Node, from `npm ci` on: what each took, and the time to the first
 * answer. Versions come from the package `node`.
 *
 *     npm run bench -- readme                       20, 22, 24 and 26, as far as the first answers
 *     npm run bench -- readme --node 22 --whole     every command, on one
 */
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { stepsOfReadme, walk } from "../test/readme/readme-walk.ts";

const OUTPUT_SHOWN = 2_000;

async function main(versions: readonly string[], whole: boolean): Promise<number> {
  const all = stepsOfReadme();
  const answered = all.findIndex(({ command }) => command.includes("explain --decision")) + 1;
  const steps = whole ? all : all.slice(0, answered);
  let failed = 0;
  for (const version of versions) {
    const folder = mkdtempSync(join(tmpdir(), "gnomon-node-"));
    try {
      execFileSync("npm", ["install", "--prefix", folder, "--no-audit", "--no-fund", `node@${version}`], {
        stdio: "ignore",
      });
      const nodeFolder = join(folder, "node_modules/node/bin");
      const own = execFileSync(join(nodeFolder, "node"), ["--version"], { encoding: "utf8" }).trim();
      process.stdout.write(`\nNode ${own}\n`);
      let sum = 0;
      let firstAnswer: number | undefined;
      await walk({
        nodeFolder,
        installs: true,
        steps,
        walked: ({ step, code, output, millis }) => {
          sum += millis;
          if (/x-gnomon-endpoint/.test(output)) firstAnswer ??= sum;
          process.stdout.write(
            `${code === 0 ? "ok " : "NOT"} ${(millis / 1_000).toFixed(1).padStart(6)} s  ${step.command}\n`,
          );
          if (code === 0) return;
          failed++;
          process.stdout.write(`${output.slice(-OUTPUT_SHOWN)}\n`);
        },
      });
      process.stdout.write(`first answer after ${((firstAnswer ?? Number.NaN) / 1_000).toFixed(1)} s\n`);
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  }
  return failed === 0 ? 0 : 1;
}

const { values } = parseArgs({
  options: { node: { type: "string", multiple: true, default: ["20", "22", "24", "26"] }, whole: { type: "boolean" } },
});
process.exitCode = await main(values.node, values.whole === true);
