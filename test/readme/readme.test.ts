import assert from "node:assert/strict";
import { test } from "node:test";
import { serversWithoutAnEnd, stepsOfReadme, walk, type Walked } from "./readme-walk.ts";

test("README.md asks to end each server before it starts the next", () => {
  assert.ok(stepsOfReadme().filter(({ serves }) => serves).length >= 3);
  assert.deepEqual(serversWithoutAnEnd(), []);
});

test("README.md is walked as far as the first answers: each command as it is printed", async (t) => {
  const all = stepsOfReadme();
  const steps = all.slice(0, all.findIndex(({ command }) => command.includes("explain --decision")) + 1);
  const walked: Walked[] = [];
  await walk({ installs: false, steps, walked: (one) => walked.push(one) });
  for (const { step, code, output } of walked) assert.equal(code, 0, `${step.command}\n${output}`);
  const [start, , , first, second, explained] = walked;
  assert.match(start!.output, /gnomon is ready at http/);
  assert.match(first!.output, /^x-gnomon-hit-tokens: 0\r?$/m);
  const { tokens = "" } = /^x-gnomon-hit-tokens: (?<tokens>\d+)\r?$/m.exec(second!.output)!.groups!;
  assert.ok(Number(tokens) > 600, second!.output);
  assert.match(explained!.output, /^profile gnomon picks http.*expecting \d{3} cached tokens/m);
  t.diagnostic(`first answer after ${Math.round(walked.slice(0, 4).reduce((sum, { millis }) => sum + millis, 0))} ms`);
});
