import assert from "node:assert/strict";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, type TestContext, test } from "node:test";
import { constants, zstdCompressSync, zstdDecompressSync } from "node:zlib";
import { loadCalibratedEngine, loadEngine } from "#config/engine-file.ts";
import { engineDefaults } from "#engine/config.ts";
import { engineWith } from "#shadow/calibrate/parameters.ts";
import type { WhatIfAnswer } from "#shadow/question/what-if.ts";
import { calibrateCommand } from "#cli/calibrate/calibrate.ts";
import { compareCommand } from "#cli/compare/compare.ts";
import { traceCommand } from "#cli/trace/trace.ts";
import { whatIfCommand } from "#cli/what-if/what-if.ts";
import { inProcess } from "../in-process.ts";
import { type RunTraffic, writeVllmRun } from "./vllm-run-files.ts";

const FOLDER = mkdtempSync(join(tmpdir(), "gnomon-calibrate-"));
after(() => rmSync(FOLDER, { recursive: true, force: true }));
let names = 0;
const fresh = (name = "") => join(FOLDER, `${names++}${name}`);

const LIGHT_SIZES = engineDefaults({
  kvBlocks: 3000,
  sequencesMax: 32,
  batchTokensMax: 2048,
  asyncScheduling: true,
});
const HEAVY_SIZES = { ...LIGHT_SIZES, blockTokens: 32, kvBlocks: 300, sequencesMax: 8, batchTokensMax: 512 };
const TRUE = {
  delayMicros: 2500,
  baseMicros: 8000,
  perPrefillTokenMicros: 40,
  perDecodeMicros: 90,
  perPrefillMicros: 0,
  perDecodeContextTokenMicros: 0,
  perPrefillPairMicros: 0,
};
const LIGHT: RunTraffic = { requests: 160, gapMicros: 120_000, seed: 1 };
const HEAVY: RunTraffic = { requests: 160, gapMicros: 65_000, seed: 2 };

const gnomon = (t: TestContext, ...argv: string[]) =>
  inProcess(t, [traceCommand(), calibrateCommand(), compareCommand(), whatIfCommand()], argv);

/** A run of an engine, imported; the folder of the trace. */
async function imported(t: TestContext, sizes: typeof LIGHT_SIZES, traffic: RunTraffic): Promise<string> {
  const [run, trace] = [fresh(), fresh()];
  writeVllmRun(run, engineWith({ ...sizes, modelTokensMax: 4096 }, TRUE), traffic);
  const { code, said } = await gnomon(t, "trace", "import", run, "-o", trace);
  assert.equal(code, 0, said);
  return trace;
}

function linesOf(trace: string): string[] {
  const [name] = readdirSync(trace);
  return zstdDecompressSync(readFileSync(join(trace, name!)))
    .toString()
    .trimEnd()
    .split("\n");
}

function segmentOf(lines: readonly string[], tail = "\n"): string {
  const file = fresh(".ndjson.zst");
  writeFileSync(file, zstdCompressSync(`${lines.join("\n")}${tail}`));
  return file;
}

test("a run of one engine, calibrated, predicts how a busier one of other sizes does, by its own trace", async (t) => {
  const [light, heavy] = [await imported(t, LIGHT_SIZES, LIGHT), await imported(t, HEAVY_SIZES, HEAVY)];
  const { out } = await gnomon(t, "trace", "info", heavy);
  assert.match(out, /engine +blockTokens 32, kvBlocks 300, sequencesMax 8, batchTokensMax 512/);
  const engine = fresh(".yaml");
  const fit = await gnomon(t, "calibrate", light, "-o", engine);
  assert.equal(fit.code, 0, fit.said);
  assert.match(fit.out, /\nRequests held out: the model is off by \S+ % in mean E2E, \S+ % in mean TPOT/);
  assert.ok(fit.notes.endsWith(`wrote ${engine}; next: gnomon what-if ${light} --engine ${engine} --profile NAME\n`));
  assert.match(fit.notes, /of the trace: blockTokens 16, kvBlocks 3000, sequencesMax 32, batchTokensMax 2048/);
  const written = loadEngine(engine);
  assert.deepEqual([written.kvBlocks, written.sequencesMax, written.batchTokensMax], [3000, 32, 2048]);

  const asked = await gnomon(t, "calibrate", heavy, "--engine", engine, "--evaluate", "--json", "-");
  assert.equal(asked.code, 0, asked.said);
  assert.match(asked.notes, /sequencesMax 8 \(--engine has 32\), batchTokensMax 512 \(--engine has 2048\)/);
  const { error } = JSON.parse(asked.out) as { error: Record<string, { meanRelative: number }> };
  // Of a queue near saturation a small error of a step is a large one of the wait.
  for (const [metric, bound] of [
    ["ttftMicros", 0.1],
    ["tpotMicros", 0.03],
    ["e2eMicros", 0.05],
  ] as const)
    assert.ok(Math.abs(error[metric]!.meanRelative) < bound, `${metric} ${error[metric]!.meanRelative}`);

  const own = await gnomon(t, "calibrate", heavy, "--engine", engine, "--evaluate", "--sizes", "engine", "--json", "-");
  const other = (JSON.parse(own.out) as { error: typeof error }).error;
  assert.ok(Math.abs(other["ttftMicros"]!.meanRelative) > 0.2, "sizes matter, or this shows nothing");
  const told = await gnomon(t, "calibrate", heavy, "--engine", engine, "--evaluate", "--sequences-max", "2");
  assert.match(told.notes, /as given: sequencesMax 2 \(--engine has 32\)/);

  const answer = fresh(".json");
  const simulated = await gnomon(t, "what-if", heavy, "--engine", engine, "--json", answer);
  assert.equal(simulated.code, 0, simulated.said);
  assert.match(simulated.notes, /kvBlocks 300 \(--engine has 3000\)/);
  const compared = await gnomon(t, "compare", heavy, answer, "--json");
  assert.equal(compared.code, 0, compared.said);
  const { figures } = JSON.parse(compared.out) as { figures: Record<string, { gaps: { relative: number }[] }> };
  assert.ok(Math.abs(figures["e2eMean"]!.gaps[0]!.relative) < 0.05, JSON.stringify(figures["e2eMean"]));
});

test("several runs show what one differs from another in; another run's interval has it, the run's own has not", async (t) => {
  const runs: string[] = [];
  for (const [i, speed] of [0.85, 1, 1.15].entries()) {
    const [run, trace] = [fresh(), fresh()];
    const truth = { ...TRUE, baseMicros: TRUE.baseMicros * speed, perDecodeMicros: TRUE.perDecodeMicros * speed };
    const wallSeconds = 1_790_000_000 + 86_400 * i;
    writeVllmRun(run, engineWith({ ...LIGHT_SIZES, modelTokensMax: 4096 }, truth), {
      ...LIGHT,
      seed: 20 + i,
      wallSeconds,
    });
    const { code, said } = await gnomon(t, "trace", "import", run, "-o", trace);
    assert.equal(code, 0, said);
    runs.push(trace);
  }
  const [first, second, third] = runs as [string, string, string];
  const [one, all] = [fresh(".yaml"), fresh(".yaml")];
  const single = await gnomon(t, "calibrate", second, "-o", one, "--between-runs", "level=0.02");
  assert.match(single.notes, /another run: steps \+-2 %, .*stated, not seen: calibrate several traces/);
  const several = await gnomon(t, "calibrate", first, second, third, "-o", all);
  assert.equal(several.code, 0, several.said);
  assert.match(several.notes, /another run: steps \+-(1[2-9]|2[0-2]) %, .*seen between 3 runs/);
  assert.equal(loadCalibratedEngine(all).source?.runs.length, 3);

  const asked = async (trace: string, engine: string, speed = "engine") => {
    const flags = ["--engine", engine, "--speed", speed, "--json", "-"];
    const { out, notes, said, code } = await gnomon(t, "what-if", trace, ...flags);
    assert.equal(code, 0, said);
    const { candidates, coverage } = JSON.parse(out) as WhatIfAnswer;
    const { low, high } = candidates[0]!.intervals.tpotMicros!.mean;
    return { notes, width: high / low, inside: coverage!.tpotMicros!.mean.inside };
  };
  const outer = fresh(".yaml");
  assert.equal((await gnomon(t, "calibrate", first, third, "-o", outer)).code, 0);
  const [own, narrow] = [await asked(second, one), await asked(third, one)];
  const [among, wide] = [await asked(third, all), await asked(second, outer)];
  assert.match(own.notes, /fitted to this very run/);
  assert.match(
    narrow.notes,
    /another run than the engine was fitted to.*another day: 2026-09-22, the trace of 2026-09-23/s,
  );
  assert.match(
    among.notes,
    /one of the 3 runs that the engine was fitted to; steps were 1\.1\d times as long as in all/,
  );
  assert.match(wide.notes, /another run than the engine was fitted to; .*seen between 2 runs/);
  assert.deepEqual([own.inside, narrow.inside, among.inside, wide.inside], [true, false, true, true]);
  const widths = [own, narrow, among, wide].map(({ width }) => width);
  assert.ok(
    own.width < narrow.width && narrow.width < wide.width && 2 * Math.log(among.width) < Math.log(wide.width),
    widths.join(),
  );

  const shown = await asked(third, one, "trace");
  assert.match(shown.notes, /by the trace's own answers steps were 1\.1\d times as long there/);
  assert.ok(shown.inside && Math.log(shown.width) < 0.5 * Math.log(wide.width), String(shown.width));

  const other = await imported(t, HEAVY_SIZES, { ...HEAVY, requests: 120 });
  const refused = await gnomon(t, "calibrate", first, other);
  assert.match(refused.said, /expected a run of the same engine as .*, got blockTokens 32 and not 16, kvBlocks 300/);
  const twice = await gnomon(t, "calibrate", first, first);
  assert.match(twice.said, /expected another run than .*, got the same one/);
  assert.equal(twice.code, 2);
  const wrong = await gnomon(t, "calibrate", first, "--between-runs", "luck=1");
  assert.match(wrong.said, /expected one of level, delay, prefill, noise, got luck/);
});

test("what a trace cannot identify is refused by name, with the traffic that would, and nothing is written", async (t) => {
  const alone = await imported(t, LIGHT_SIZES, { requests: 120, gapMicros: 4_000_000, seed: 3 });
  const engine = fresh(".yaml");
  const refused = await gnomon(t, "calibrate", alone, "-o", engine);
  assert.equal(refused.code, 1);
  assert.match(
    refused.said,
    /baseMicros and perDecodeMicros: .*sometimes one and sometimes many.*--fix perDecodeMicros/s,
  );
  assert.equal(existsSync(engine), false);
  const helped = await gnomon(t, "calibrate", alone, "--fix", "perDecodeMicros=90");
  assert.equal(helped.code, 0, helped.said);

  const equal = await imported(t, LIGHT_SIZES, { ...LIGHT, equal: true });
  assert.match(
    (await gnomon(t, "calibrate", equal)).said,
    /delayMicros and perPrefillTokenMicros: .*different lengths/s,
  );
  const few = await imported(t, LIGHT_SIZES, { ...LIGHT, requests: 30 });
  assert.match((await gnomon(t, "calibrate", few)).said, /expected 40 answered requests .* got 21; record for longer/);
});

test("a trace that is torn, damaged, foreign, empty, unordered or repeats an id: an error, or counted by reason", async (t) => {
  const lines = linesOf(await imported(t, LIGHT_SIZES, { ...LIGHT, requests: 120 }));
  const told = async (trace: string, ...flags: string[]) => {
    const { code, notes, said } = await gnomon(t, "calibrate", trace, "--json", "-", ...flags);
    return `${code} ${notes}${said}`;
  };
  // Read as for a fit, which takes longer and adds nothing to what is reported of the trace.
  const read = (trace: string) => told(trace, "--engine", "emulated-default", "--evaluate");
  const arrival = lines.findIndex((line) => line.startsWith('{"kind":"request-arrived"'));
  assert.match(await told(segmentOf([...lines, '{"kind":"request-fin'], "")), /^0 .*1 lines left out: torn/s);
  assert.match(
    await read(segmentOf(lines.toSpliced(arrival, 0, lines[arrival]!))),
    /^0 .*1 lines left out: duplicate-id.*\d+: request\.id: expected one that is not in flight/s,
  );
  const last = lines.findLastIndex((line) => line.startsWith('{"kind":"request-arrived"'));
  assert.match(
    await read(segmentOf(lines.toSpliced(last, 1))),
    /^0 .*1 left out: its arrival is not in the trace/s,
    "an end without its arrival",
  );
  assert.match(
    await read(segmentOf(lines.toSpliced(arrival, 1))),
    /^0 .*\d+ lines left out: unknown-block.*expected blocks that were read before/s,
    "prompts that continue one that is gone",
  );
  assert.match(
    await read(segmentOf(lines.slice(0, last + 1))),
    /^0 .*left out: still in flight at the end of the trace/s,
    "cut between two lines",
  );
  const moved = lines.toSpliced(-2, 1).toSpliced(arrival + 3, 0, lines.at(-2)!);
  assert.match(await read(segmentOf(moved)), /records lie before the time of the one above them/);
  assert.match(
    await told(segmentOf([lines[0]!.replace('"version":1', '"version":7'), ...lines.slice(1)])),
    /^1 .*version: expected 1, got 7/s,
  );
  assert.match(await told(segmentOf([], "")), /^1 .*expected a trace, got nothing that could be read/s);
  assert.match(await told(segmentOf(lines.slice(0, 1))), /^1 .*got 0; record for longer/s, "a header alone");
  const damaged = fresh(".ndjson.zst");
  const bytes = zstdCompressSync(lines.join("\n"), { params: { [constants.ZSTD_c_checksumFlag]: 1 } });
  writeFileSync(damaged, bytes.fill(7, Math.floor(bytes.length / 2), Math.floor(bytes.length / 2) + 40));
  assert.match(await told(damaged), /^1 .*got nothing that could be read \(.*expected zstd data, got damage/s);
});

test("of several runs in a folder the last one counts, and the requests of the others are reported", async (t) => {
  const folder = fresh();
  mkdirSync(folder);
  for (const [i, requests] of [30, 120].entries()) {
    const [header, ...lines] = linesOf(await imported(t, LIGHT_SIZES, { ...LIGHT, requests }));
    const named = header!.replace('"run":"imported"', `"run":"run_${i}"`);
    writeFileSync(join(folder, `${i}.ndjson.zst`), zstdCompressSync(`${[named, ...lines].join("\n")}\n`));
  }
  const { code, notes, said } = await gnomon(t, "calibrate", folder);
  assert.equal(code, 0, said);
  assert.match(notes, /30 left out: of an earlier run of the recorder/);
});

test("what is asked wrongly is reported with what is accepted", async (t) => {
  const light = await imported(t, LIGHT_SIZES, { ...LIGHT, requests: 60 });
  const empty = fresh();
  mkdirSync(empty);
  for (const [argv, code, words] of [
    [["nowhere"], 2, /expected a trace, got nowhere/],
    [[empty], 1, /expected a recorded trace, as --record and trace import write it/],
    [[light, "--endpoint", "other"], 2, /--endpoint: expected ones that served requests, got other/],
    [[light, "--fix", "speed=1"], 2, /expected one of delayMicros/],
    [[light, "--fix", "baseMicros=-1"], 2, /microseconds of 0 or more/],
    [[light, "--train", "2"], 2, /between 0 and 1/],
    [[light, "--kv-blocks", "0"], 2, /whole number of 2 to 100000000/],
    [[light, "--kv-blocks", "20"], 2, /--model-tokens-max: expected \d+ \(the longest request\) to 304/],
    [[light, "--engine", "none.yaml"], 2, /none\.yaml/],
    [[light, "--evaluate"], 2, /--evaluate: expected --engine/],
    [[light, "--sizes", "mine"], 2, /Allowed choices are trace, engine/],
  ] as const) {
    const refused = await gnomon(t, "calibrate", ...argv);
    assert.match(refused.said, words, argv.join(" "));
    assert.equal(refused.code, code, argv.join(" "));
  }
});

test("what-if names what makes a file no workload", async (t) => {
  const foreign = fresh(".jsonl");
  writeFileSync(foreign, '{"format":"gnomon-workload","version":9}\n');
  const refused = await gnomon(t, "what-if", foreign);
  assert.match(refused.said, /version: expected 1, got 9/);
  assert.equal(refused.code, 2);
});

test("the folder of a run does as well as the trace that is made of it, to the byte", async (t) => {
  const [run, trace] = [fresh(), fresh()];
  writeVllmRun(run, engineWith({ ...LIGHT_SIZES, modelTokensMax: 4096 }, TRUE), { ...LIGHT, requests: 80 });
  await gnomon(t, "trace", "import", run, "-o", trace);
  const figures = async (path: string) => (await gnomon(t, "calibrate", path, "--json", "-")).out;
  assert.match(await figures(run), /"heldOut"/);
  assert.equal(await figures(run), await figures(trace));
  const asked = await gnomon(t, "what-if", run);
  assert.match(asked.out, /gnomon simulated against what really happened/);
});
