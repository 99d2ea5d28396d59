/**
 * `node --import ./test/property-seed.ts --import ./test/stalls.ts --test FILE...`: these processes stand still again and
 * again, as on a machine whose cores others use: mostly for some hundredths of a second, at times for half a second. A test
 * that fails of it rests on how fast the machine is, or on an order that it does not enforce.
 */
const STALL_MILLIS = [5, 60] as const;
const LONG_STALL_MILLIS = [200, 600] as const;
const LONG_SHARE = 0.05;
const RUN_MILLIS = [1, 120] as const;

const cell = new Int32Array(new SharedArrayBuffer(4));
/** The real one, also where a test puts its own in place. */
const later = setTimeout;

function between([least, most]: readonly [number, number]): number {
  return least + Math.random() * (most - least);
}

function runUntilNext(): void {
  later(standStill, between(RUN_MILLIS)).unref();
}

function standStill(): void {
  Atomics.wait(cell, 0, 0, between(Math.random() < LONG_SHARE ? LONG_STALL_MILLIS : STALL_MILLIS));
  runUntilNext();
}

runUntilNext();
