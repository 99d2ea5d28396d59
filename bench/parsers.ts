/**
 * What bytes cost that another process made to be dear: engines' pages, answers and events, other gateways' reports, policies,
 * lists of an API server, traces. Each shape is doubled four times up to the most that is read at once by default.
 *
 *     npx node bench/parsers.ts [READER...] [--all]
 *
 * Shown are the milliseconds of CPU at the most, the exponent of CPU by size (the slope of logarithms by least squares over
 * the lowest of three), and the longest stretch of the event loop, in CPU, so that both hold on a busy machine. Rows that
 * are within bounds are left out without --all. Ends with 1 where an exponent is above 1.15 or a stretch above 50 ms; what
 * only the operator can send (files, the admin token) has no bound on its stretch, and what a format bounds (an answer of the
 * DNS has 64 KiB at most, of which the resolver's own list costs the square, 30 ms) none on its exponent.
 */
import { parseArgs } from "node:util";
import { type Reader, READERS } from "./parsers/readers.ts";
import { threadCpuMillis } from "./thread-cpu.ts";

const EXPONENT_MAX = 1.15;
const STRETCH_MILLIS_MAX = 50;
const DOUBLINGS = 4;
const ROUNDS = 3;
/** What is faster is too short to have a slope. */
const MILLIS_MIN = 20;
/** What is faster is calls and compilers alone. */
const COUNTED_MILLIS_MIN = 0.1;

const { values, positionals } = parseArgs({ options: { all: { type: "boolean" } }, allowPositionals: true });
const names = positionals.length > 0 ? positionals : Object.keys(READERS);
const unknown = names.filter((name) => !Object.hasOwn(READERS, name));
if (unknown.length > 0)
  throw new RangeError(`no ${unknown.join(", ")}; expected some of ${Object.keys(READERS).join(", ")}`);
let shapes = 0;
let beyond = 0;
console.log(`${"".padEnd(62)}${["CPU ms", "exponent", "stretch ms"].map((cell) => cell.padStart(12)).join("")}`);
for (const name of names) {
  const reader = READERS[name]!;
  for (const shape of Object.keys(reader.shapes)) {
    shapes++;
    const { millis, exponent, stretchMillis } = await measured(reader, shape);
    const isSteep = exponent > EXPONENT_MAX && millis > MILLIS_MIN && reader.isBounded !== true;
    const isLong = stretchMillis > STRETCH_MILLIS_MAX && reader.isOperators !== true;
    if (isSteep || isLong) beyond++;
    else if (values.all !== true) continue;
    const cells = [millis.toFixed(1), exponent.toFixed(2), stretchMillis.toFixed(1)];
    console.log(
      `${`${name}: ${shape}`.padEnd(62)}${cells.map((cell) => cell.padStart(12)).join("")}${isSteep || isLong ? "  !" : ""}`,
    );
  }
}
console.log(
  `${shapes} shapes of ${names.length} readers, ${beyond} beyond an exponent of ${EXPONENT_MAX} or a stretch of ${STRETCH_MILLIS_MAX} ms`,
);
process.exitCode = beyond > 0 ? 1 : 0;

interface Measured {
  readonly millis: number;
  readonly exponent: number;
  readonly stretchMillis: number;
}

async function measured(reader: Reader, name: string): Promise<Measured> {
  const shape = reader.shapes[name]!;
  const sizes = Array.from({ length: DOUBLINGS + 1 }, (_, i) => reader.bytesMax / 2 ** (DOUBLINGS - i));
  const lowest = sizes.map(() => Infinity);
  let stretchMillis = Infinity;
  for (let round = 0; round < ROUNDS; round++) {
    for (const [i, size] of sizes.entries()) {
      const bytes = shape(size).subarray(0, reader.isOperators === true ? undefined : reader.bytesMax);
      const { millis, longest } = await cost(reader, bytes);
      lowest[i] = Math.min(lowest[i]!, millis);
      if (i === DOUBLINGS) stretchMillis = Math.min(stretchMillis, longest);
      // Some ten seconds, however steep.
      if (millis > 3_000)
        return { millis, exponent: Math.log2(millis / (lowest[i - 1] ?? millis)), stretchMillis: longest };
    }
  }
  return {
    millis: lowest.at(-1)!,
    exponent: slope(
      sizes.map(Math.log),
      lowest.map((one) => Math.log(Math.max(one, COUNTED_MILLIS_MIN))),
    ),
    stretchMillis,
  };
}

/** CPU of this thread while it is read, and between two passes of the event loop at most. */
async function cost(reader: Reader, bytes: Buffer): Promise<{ readonly millis: number; readonly longest: number }> {
  await new Promise(setImmediate);
  const start = threadCpuMillis();
  let last = start;
  let longest = 0;
  let isOver = false;
  const pass = (): void => {
    const now = threadCpuMillis();
    longest = Math.max(longest, now - last);
    last = now;
    if (!isOver) setImmediate(pass);
  };
  setImmediate(pass);
  try {
    await reader.read(bytes);
  } catch {
    // Refused is read.
  }
  isOver = true;
  const millis = threadCpuMillis() - start;
  await new Promise(setImmediate);
  return { millis, longest };
}

function slope(xs: readonly number[], ys: readonly number[]): number {
  const mean = (all: readonly number[]): number => all.reduce((sum, one) => sum + one, 0) / all.length;
  const [x, y] = [mean(xs), mean(ys)];
  const along = xs.reduce((sum, one, i) => sum + (one - x) * (ys[i]! - y), 0);
  return along / xs.reduce((sum, one) => sum + (one - x) ** 2, 0);
}
