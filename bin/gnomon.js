#!/usr/bin/env node
// JavaScript, so that a Node that cannot read the sources can still say so, or hand over to the one among the dependencies.
import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import module from "node:module";
import { constants } from "node:os";
import { fileURLToPath } from "node:url";

const MAJOR_MIN = 24;
const MINOR_MIN = 12;
const MAIN = new URL("../src/main.ts", import.meta.url);
const COMPILE_CACHE = fileURLToPath(new URL("../node_modules/.cache/gnomon", import.meta.url));
const OWN_NODE = fileURLToPath(new URL("../node_modules/node/bin/node", import.meta.url));
/** Words that serve until they are stopped; without one it is `serve`. */
const SERVERS = ["serve", "emulate", "tap"];
const WORD = process.argv[2] ?? "serve";
/** Flags after which nothing is served. */
const ONCE = new Set(["-h", "--help", "--help-all", "-V", "--version"]);
const IS_SERVER = SERVERS.includes(WORD) || WORD.startsWith("-");
/** Room for objects that a server just made, of which most are dead a moment later; MB, twice. V8 takes up to 32 twice. */
const YOUNG_MEGABYTES = "--max-semi-space-size=16";
/** glibc's arenas of memory are a thread's each, and what one of them freed stays in it. */
const ARENAS_MAX = "2";
/** @type {NodeJS.Signals[]} */
const STOPS = ["SIGINT", "SIGTERM", "SIGHUP"];
/** @type {NodeJS.Signals[]} */
const FORWARDED = [...STOPS, "SIGQUIT"];

// What was compiled by one run is read back by the next, in the processes that this one starts too: a command starts in a
// third of the time. NODE_DISABLE_COMPILE_CACHE=1 turns it off, NODE_COMPILE_CACHE names another folder; one that cannot
// be written is done without.
process.env["NODE_COMPILE_CACHE"] ??= COMPILE_CACHE;

if (isUnbounded()) startBounded();

const [major = 0, minor = 0] = process.versions.node.split(".").map(Number);
if (major > MAJOR_MIN || (major === MAJOR_MIN && minor >= MINOR_MIN)) {
  module.enableCompileCache();
  process.argv[1] = fileURLToPath(MAIN);
  // An older Node has no such hooks.
  (await import("./known-modules.js")).resolveKnownModules();
  // Before the rest is loaded, which takes a moment.
  const { stopEarly } = await import("../src/serve/process/early-stop.ts");
  stopEarly(process.argv.slice(2));
  await import(MAIN.href);
} else if (existsSync(OWN_NODE)) handOver();
else {
  process.stderr.write(
    `gnomon: expected Node ${MAJOR_MIN}.${MINOR_MIN} or later, got ${process.versions.node}; "npm ci" in its sources brings one along\n`,
  );
  process.exitCode = 1;
}

/** A server whose memory is not bounded yet, by this or by who starts it. */
function isUnbounded() {
  const flags = [...process.execArgv, process.env["NODE_OPTIONS"] ?? ""].join(" ");
  return IS_SERVER && !ONCE.has(WORD) && !flags.includes("semi-space-size");
}

/**
 * The same process, begun again with bounds that only a start can set: a server's first 40 ms twice. Where that cannot be
 * done, as on Windows or by a parent that has a channel to it, it goes on without.
 */
function startBounded() {
  process.env["MALLOC_ARENA_MAX"] ??= ARENAS_MAX;
  if (process.execve === undefined || process.platform === "win32" || process.channel !== undefined) return;
  const args = [process.execPath, YOUNG_MEGABYTES, ...process.execArgv, ...process.argv.slice(1)];
  try {
    process.execve(process.execPath, args);
  } catch {
    // A Node that may not, or cannot.
  }
}

function handOver() {
  // In a process group of its own: what a terminal or a supervisor sends to the whole group comes through here alone. This
  // process waits for the other.
  const bounds = isUnbounded() ? [YOUNG_MEGABYTES] : [];
  const args = [...bounds, fileURLToPath(MAIN), ...process.argv.slice(2)];
  const child = spawn(OWN_NODE, args, { stdio: "inherit", detached: true });
  for (const signal of FORWARDED) process.on(signal, () => child.kill(signal));
  child.once("error", (error) => {
    process.stderr.write(`gnomon: ${OWN_NODE}: ${error.message}\n`);
    process.exitCode = 1;
  });
  child.once("exit", (code, signal) => {
    // A server that ends by a stop signal had not run a line of its own yet, and nothing had to be closed.
    if (IS_SERVER && signal !== null && STOPS.includes(signal)) process.exitCode = 0;
    else process.exitCode = code ?? (signal === null ? 1 : 128 + constants.signals[signal]);
  });
}
