import assert from "node:assert/strict";
import { test } from "node:test";
import { README, serversWithoutAnEnd, stepsOfReadme, walk, type Walked } from "./readme-walk.ts";

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

test("README.md rolls out what its what-if found to be better, with traffic between start and promotion", () => {
  const commands = stepsOfReadme().map(({ command }) => command);
  const at = (part: string): number => commands.findIndex((command) => command.includes(part));
  const arms = [...commands[at("rollout plan")]!.matchAll(/--arm (\S+)/g)].map(([, arm]) => arm);
  const [answer] = /^(\S+) would have been better than (\S+) in E2E/m.exec(README)?.slice(1, 2) ?? [];
  assert.deepEqual(arms, ["round-robin", answer]);
  const order = [
    "rollout plan",
    "serve --profile round-robin  ",
    "rollout start",
    "rollout status",
    "rollout promote",
  ].map(at);
  assert.deepEqual(
    order,
    order.toSorted((a, b) => a - b),
  );
  assert.ok(!order.includes(-1), String(order));
  const between = commands.slice(at("rollout start"), at("rollout promote"));
  assert.ok(between.some((command) => command.includes("gnomon drive")));
});
