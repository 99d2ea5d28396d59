import assert from "node:assert/strict";
import { test } from "node:test";
import { Speed } from "#core/latency/latency-model.ts";

test("a speed begins at 1, comes to what is measured, and follows when that changes", () => {
  const speed = new Speed(10_000);
  assert.equal(speed.value, 1);
  for (let i = 0; i < 100; i++) speed.add(i * 1_000, 30_000, 10_000);
  assert.ok(Math.abs(speed.value - 3) < 0.05, `${speed.value}`);
  for (let i = 100; i < 200; i++) speed.add(i * 1_000, 10_000, 10_000);
  assert.ok(Math.abs(speed.value - 1) < 0.05, `${speed.value}`);
});

test("a short time that was disturbed weighs no more than it took", () => {
  const speed = new Speed(10_000);
  for (let i = 0; i < 50; i++) speed.add(i * 1_000, 1_000_000, 1_000_000);
  speed.add(50_000, 80_000, 10_000);
  assert.ok(speed.value < 1.01, `${speed.value}`);
});

test("what is long ago counts little beside what is measured now", () => {
  const [recent, old] = [new Speed(10_000), new Speed(10_000)];
  for (let i = 0; i < 50; i++) for (const speed of [recent, old]) speed.add(i * 1_000, 10_000, 10_000);
  recent.add(51_000, 30_000, 10_000);
  old.add(600_000_000, 30_000, 10_000);
  assert.ok(recent.value < 1.2 && old.value > 1.4, `${recent.value} and ${old.value}`);
});
