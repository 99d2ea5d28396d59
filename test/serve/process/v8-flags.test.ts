import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { globSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { test } from "node:test";

const SERVE = resolve(import.meta.dirname, "../../../src/serve");

const IN_A_THREAD = `
import { Worker } from "node:worker_threads";
import { setV8 } from ${JSON.stringify(join(SERVE, "process/v8-settings.ts"))};
const code = ${JSON.stringify(`
  import { getHeapSpaceStatistics } from "node:v8";
  import { parentPort } from "node:worker_threads";
  let kept = [];
  for (let i = 0; i < 3e6; i++) {
    kept.push({ i, array: [i] });
    if (kept.length > 2e5) kept = [];
  }
  parentPort.postMessage(getHeapSpaceStatistics().find((space) => space.space_name === "new_space").space_size);
`)};
setV8();
const worker = new Worker(code, { eval: true, resourceLimits: { maxYoungGenerationSizeMb: 24 } });
worker.once("message", (bytes) => process.stdout.write(String(bytes)));
`;

test("a thread has the room for objects just made that it is given, and not the serving one's", () => {
  const args = ["--max-semi-space-size=16", "--input-type=module", "-e", IN_A_THREAD];
  const { stdout, stderr } = spawnSync(process.execPath, args, { encoding: "utf8" });
  assert.equal(stderr, "");
  assert.match(stdout, /^\d+$/);
  assert.ok(Number(stdout) < 20e6, `${stdout} bytes`);
});

const OF_TICKS = `
import { createHook } from "node:async_hooks";
import { setV8 } from ${JSON.stringify(join(SERVE, "process/v8-settings.ts"))};
const made = [];
const watch = (set) => {
  const init = (id, type, trigger, resource) => type === "TickObject" && made.push(new WeakRef(resource));
  const hook = createHook({ init }).enable();
  set();
  hook.disable();
};
watch(() => process.nextTick(() => {}));
watch(setV8);
setTimeout(() => {
  gc();
  process.stdout.write(made.map((tick) => typeof tick.deref()).join(" "));
}, 1);
`;

test("of the objects that Node makes of ticks one is there behind a collection that meets no other", () => {
  const args = ["--expose-gc", "--input-type=module", "-e", OF_TICKS];
  const { stdout, stderr } = spawnSync(process.execPath, args, { encoding: "utf8" });
  assert.equal(stderr, "");
  assert.equal(stdout, "undefined object");
});

const OF_BUFFERS = `
import { constants, PerformanceObserver } from "node:perf_hooks";
import { setTimeout as sleep } from "node:timers/promises";
import { setV8 } from ${JSON.stringify(join(SERVE, "process/v8-settings.ts"))};
if (process.argv[1] === "set") setV8();
const old = Array.from({ length: 4e5 }, (_, i) => ({ i, array: [i] }));
let full = 0;
const isFull = ({ detail }) => detail.kind === constants.NODE_PERFORMANCE_GC_MAJOR;
new PerformanceObserver((list) => (full += list.getEntries().filter(isFull).length)).observe({ entryTypes: ["gc"] });
for (let pause = 0; pause < 300; pause++) {
  for (let i = 0; i < 16; i++) Buffer.allocUnsafeSlow(65_536);
  await sleep(3);
}
process.stdout.write(String(old.length === 4e5 ? full : old.length));
`;

test("buffers that come and go bring fewer full collections than V8 would make by itself", () => {
  const args = ["--max-semi-space-size=16", "--memory-reducer-gc-count=0", "--input-type=module", "-e", OF_BUFFERS];
  const [plain, set] = ["plain", "set"].map((word) => {
    const { stdout, stderr } = spawnSync(process.execPath, [...args, word], { encoding: "utf8" });
    assert.equal(stderr, "");
    return Number(stdout);
  });
  assert.ok(plain! >= 2 && set! <= 1, `${set} beside ${plain}`);
});

test("this V8 has every flag that serve sets, which it would pass over otherwise", () => {
  const { stdout } = spawnSync(process.execPath, ["--v8-options"], { encoding: "utf8" });
  const known = new Set([...stdout.matchAll(/^ {2}--([\w-]+)/gm)].map(([, name]) => name));
  const set = globSync("**/*.ts", { cwd: SERVE }).flatMap((file) =>
    [...readFileSync(resolve(SERVE, file), "utf8").matchAll(/setFlagsFromString\("--(?:no-)?([\w-]+)/g)].map(
      ([, name]) => name!,
    ),
  );
  assert.ok(set.length >= 3, `${set.length} flags are set`);
  assert.deepEqual(
    set.filter((name) => !known.has(name)),
    [],
  );
});
