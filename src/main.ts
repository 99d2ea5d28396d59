#!/usr/bin/env node
import { readFileSync } from "node:fs";
import { configCommand } from "./cli/config.ts";
import { createProgram, run } from "./cli/program.ts";
import { serveCommand } from "./cli/serve.ts";

const { version } = JSON.parse(readFileSync(new URL("../package.json", import.meta.url), "utf8")) as {
  version: string;
};
const program = createProgram(version, [serveCommand(), configCommand()]);
process.exitCode = await run(program, process.argv.slice(2), (line) => process.stderr.write(`gnomon: ${line}\n`));
