import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { resolve } from "node:path";
import { test } from "node:test";

const BIN = resolve(import.meta.dirname, "../../../bin/gnomon.js");

/** Workers are warmed up before it is known that nobody will ask them. */
const ENVIRONMENT = { ...process.env, GNOMON_LISTEN_WARM_UP_MILLIS: "0" };

/** Has a process send itself a signal as soon as somebody handles it for the n-th time. */
const signalsItself = (signal: NodeJS.Signals, nth: number) => `
const { on } = process;
let listeners = 0;
process.on = function (name, listener) {
  on.call(this, name, listener);
  if (name === "${signal}" && ++listeners === ${nth}) process.kill(process.pid, "${signal}");
  return this;
};`;

async function ended(signal: NodeJS.Signals, nth: number, args: readonly string[]) {
  const preload = `data:text/javascript,${encodeURIComponent(signalsItself(signal, nth))}`;
  const child = spawn(process.execPath, ["--import", preload, BIN, ...args], {
    env: ENVIRONMENT,
    stdio: ["ignore", "pipe", "pipe"],
  });
  let out = "";
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding("utf8").on("data", (text: string) => (out += text));
  const [code, by] = (await once(child, "close")) as [number | null, NodeJS.Signals | null];
  return { code, by, out };
}

const STARTS: readonly (readonly [NodeJS.Signals, string])[] = [
  ["SIGTERM", "--port 0 --set emulate.count=1"],
  ["SIGINT", "serve --port 0 --set emulate.count=1"],
  ["SIGHUP", "emulate --count 2 --port-base 0"],
];

for (const [signal, line] of STARTS) {
  test(`${signal} before anything has begun ends "gnomon ${line}" with 0, and nothing begins`, async () => {
    assert.deepEqual(await ended(signal, 1, line.split(" ")), { code: 0, by: null, out: "" });
  });

  test(`${signal} while "gnomon ${line}" starts ends it with 0, and closes what has begun`, async () => {
    const { code, by, out } = await ended(signal, 2, line.split(" "));
    assert.deepEqual({ code, by }, { code: 0, by: null }, out);
    // Its end is seen when all that it started has closed its output as well.
    assert.doesNotMatch(out, /"event":"ready"/);
  });
}
