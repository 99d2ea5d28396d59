/**
 * Benches by name, each a process of its own, one after another.
 *
 *     npm run bench                  what the budgets are about, with short settings
 *     npm run bench -- NAME...       these
 *     npm run bench -- NAME SETTINGS this, with settings of its own
 *     npm run bench -- release       the figures of all pages, on this commit; see release.ts
 *     npm run bench -- --list        all, with a line each
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { BENCHES } from "./catalogue.ts";

/** Not one bench, but the pages of all. */
const RELEASE = "release";

async function main(names: readonly string[], settings: readonly string[], listing: boolean): Promise<number> {
  if (listing) {
    for (const [name, { about, onDemand, needs = [] }] of Object.entries(BENCHES)) {
      const needed = needs.length > 0 ? `; needs ${needs.join(", ")}` : "";
      process.stdout.write(`${name.padEnd(16)} ${about}${onDemand === true ? ` (only by name${needed})` : ""}\n`);
    }
    process.stdout.write(`${RELEASE.padEnd(16)} the figures of all pages, on this commit (only by name)\n`);
    return 0;
  }
  const unknown = names.filter((name) => !Object.hasOwn(BENCHES, name));
  if (unknown.length > 0) {
    process.stderr.write(`bench: no ${unknown.join(", ")}; expected some of ${Object.keys(BENCHES).join(", ")}\n`);
    return 2;
  }
  if (settings.length > 0 && names.length !== 1) {
    process.stderr.write(`bench: ${settings.join(" ")}: expected settings behind one name\n`);
    return 2;
  }
  const failed: string[] = [];
  const all = Object.keys(BENCHES).filter((name) => BENCHES[name]!.onDemand !== true);
  for (const name of names.length > 0 ? names : all) {
    process.stdout.write(`\n# ${name}: ${BENCHES[name]!.about}\n`);
    const code = await run(name, names.length > 0 ? settings : (BENCHES[name]!.short ?? []));
    if (code !== 0) failed.push(name);
  }
  if (failed.length > 0) process.stderr.write(`bench: failed: ${failed.join(", ")}\n`);
  return failed.length > 0 ? 1 : 0;
}

/** Resolves with the exit code, 1 where a signal ended it. */
async function run(name: string, args: readonly string[]): Promise<number> {
  const child = spawn(process.execPath, [join(import.meta.dirname, `${name}.ts`), ...args], { stdio: "inherit" });
  const [code] = (await once(child, "exit")) as [number | null];
  return code ?? 1;
}

const argv = process.argv.slice(2);
const listing = argv.includes("--list");
const names = argv.slice(0, argv.findIndex((one) => one.startsWith("-")) >>> 0);
const settings = listing ? [] : argv.slice(names.length);
process.exitCode = names[0] === RELEASE ? await run(RELEASE, argv.slice(1)) : await main(names, settings, listing);
