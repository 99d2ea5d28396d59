import assert from "node:assert/strict";
import { test } from "node:test";
import * as fc from "fast-check";
import { atOnce } from "#live/base/loop-turn.ts";
import { readExposition, type SampleVisitor } from "#live/scrape/exposition.ts";
import { CAPTURED_PAGES, capturedPage, writtenPage } from "./captured-page.ts";

interface Sample {
  readonly name: string;
  readonly labels: Record<string, string>;
  readonly value: number;
}

function read(page: string, names: Iterable<string>): { samples: Sample[]; malformed: number } {
  const samples: Sample[] = [];
  const visit: SampleVisitor = (name, labels, value) =>
    void samples.push({ name, labels: Object.fromEntries(labels), value });
  const malformed = atOnce(readExposition(page, new Set(names), visit));
  return { samples, malformed };
}

/** Reads a page of well-formed lines the slow and obvious way. */
function oracle(page: string): Sample[] {
  return page
    .split("\n")
    .filter((line) => line !== "" && !line.startsWith("#"))
    .map((line) => {
      const [, name, labelText, value] = /^([^{ ]+)(?:\{(.*)\})? (\S+)$/.exec(line)!;
      const labels: Record<string, string> = {};
      for (const [, label, text] of (labelText ?? "").matchAll(/([a-zA-Z_]\w*)="((?:[^"\\]|\\.)*)"/g)) {
        labels[label!] = JSON.parse(`"${text}"`) as string;
      }
      return { name: name!, labels, value: value === "+Inf" ? Infinity : Number(value) };
    });
}

for (const name of CAPTURED_PAGES) {
  test(`every sample of ${name} is read as an independent reader does`, () => {
    const page = capturedPage(name);
    const expected = oracle(page);
    assert.ok(expected.length > 400, "the page is a whole one");
    const { samples, malformed } = read(page, new Set(expected.map((sample) => sample.name)));
    assert.equal(malformed, 0);
    assert.deepEqual(samples, expected);
  });
}

test("only wanted names are visited, whatever they are a prefix of", () => {
  const page = capturedPage("metrics_waiting");
  const { samples } = read(page, ["vllm:num_requests_waiting", "vllm:prompt_tokens_total"]);
  assert.deepEqual(
    samples.map((sample) => sample.name),
    ["vllm:num_requests_waiting", "vllm:prompt_tokens_total"],
  );
});

test("families that are passed over take nothing wanted with them, announced or not", () => {
  const family = fc.record({
    name: fc.constantFrom("a", "a_b", "ab", "a_b_c", "b"),
    isAnnounced: fc.boolean(),
    suffixes: fc.array(fc.constantFrom("", "_bucket", "_sum", "_count", "_total", "_other"), { maxLength: 5 }),
  });
  const pages = fc.array(family, { maxLength: 8 });
  const names = fc.uniqueArray(
    fc.constantFrom("a", "a_sum", "a_b", "a_b_count", "ab_bucket", "a_b_c_total", "b_other"),
  );
  fc.assert(
    fc.property(pages, names, (families, wanted) => {
      // A sample that bears none of a family's suffixes is of another family; one that is announced has no such sample.
      const lines = families.flatMap(({ name, isAnnounced, suffixes }, i) => [
        ...(isAnnounced ? [`# HELP ${name} of something`, `# TYPE ${name} histogram`] : []),
        ...suffixes.filter((suffix) => !isAnnounced || suffix !== "_other").map((suffix) => `${name}${suffix} ${i}`),
      ]);
      const page = `${lines.join("\n")}\n`;
      const expected = groupsAreWhole(lines)
        ? oracle(page).filter(({ name }) => wanted.some((one) => one === name))
        : undefined;
      if (expected !== undefined) assert.deepEqual(read(page, wanted).samples, expected);
    }),
  );
});

/** No line of another family lies between those of an announced one, as the format demands. */
function groupsAreWhole(lines: readonly string[]): boolean {
  let announced = "";
  let isOver = true;
  for (const line of lines) {
    if (line.startsWith("# TYPE ")) announced = line.split(" ")[2]!;
    if (line.startsWith("#")) {
      isOver = false;
      continue;
    }
    const isOwn = announced !== "" && /^(?:_bucket|_sum|_count|_total|) \d+$/.test(line.slice(announced.length));
    const belongs = isOwn && line.startsWith(announced);
    if (belongs && isOver) return false;
    if (!belongs) isOver = true;
  }
  return true;
}

test("what the formats allow is read, what is broken is counted and left out", () => {
  const { samples, malformed } = read(writtenPage("openmetrics"), ["a", "b"]);
  assert.deepEqual(samples, [
    { name: "a", labels: { x: "1" }, value: 1 },
    { name: "b", labels: {}, value: 2 },
    { name: "b", labels: { x: 'q"uo\\te\nnew', y: "}#," }, value: -0.035 },
    { name: "b", labels: { x: "inf" }, value: Infinity },
    { name: "b", labels: { x: "ninf" }, value: -Infinity },
    { name: "b", labels: { x: "nan" }, value: NaN },
    { name: "b", labels: {}, value: 5 },
    { name: "b", labels: {}, value: 7 },
    { name: "b", labels: {}, value: 6 },
  ]);
  assert.equal(malformed, 4);
});

test("law: labels and values survive writing and reading", () => {
  const label = fc.tuple(fc.stringMatching(/^[a-z_][a-z0-9_]{0,6}$/), fc.string({ unit: "grapheme", maxLength: 12 }));
  const value = fc.oneof(fc.double(), fc.integer());
  fc.assert(
    fc.property(fc.array(fc.tuple(fc.uniqueArray(label, { selector: ([name]) => name }), value)), (rows) => {
      const line = ([labels, value]: (typeof rows)[number]) =>
        `m{${labels.map(([name, text]) => `${name}="${escapeLabel(text)}"`).join(",")}} ${value}`;
      const { samples, malformed } = read(rows.map(line).join("\n"), ["m"]);
      assert.equal(malformed, 0);
      assert.deepEqual(
        samples.map((sample) => [Object.entries(sample.labels), sample.value]),
        rows.map(([labels, value]) => [Object.entries(Object.fromEntries(labels)), Number(String(value))]),
      );
    }),
  );
});

test("law: no text makes it throw, and a cut page gives the samples of its whole lines", () => {
  fc.assert(
    fc.property(fc.string({ unit: fc.constantFrom(...Array.from('b{}x="\\, \n\r1#eN+')) }), (page) => {
      read(page, ["b", "bb", "x"]);
    }),
  );
  const page = capturedPage("metrics_dp2_running");
  const names = new Set(oracle(page).map((sample) => sample.name));
  const whole = read(page, names).samples;
  for (let cut = 0; cut < page.length; cut += 997) {
    const lines = page.slice(0, page.lastIndexOf("\n", cut) + 1);
    const { samples } = read(lines, names);
    assert.deepEqual(samples, whole.slice(0, samples.length));
  }
});

test("law: a page that is read in slices pauses in each, and has the samples of its lines", () => {
  const line = fc.constantFrom(
    "# TYPE a counter",
    "  # TYPE a_b gauge",
    "#",
    "a 1",
    "a_sum 2",
    "a_b 3",
    "b_other 4",
    "",
  );
  const wanted = new Set(["a_b", "a_sum", "b_other"]);
  fc.assert(
    fc.property(
      fc.array(line, { minLength: 1, maxLength: 12 }),
      fc.integer({ min: 0, max: 80_000 }),
      (lines, times) => {
        // Padded, so that the same lines come out whether pauses lie between them or not.
        const samples = (page: string, least: number): number => {
          let found = 0;
          let pauses = 0;
          const work = readExposition(page, wanted, () => void found++);
          for (let slice = work.next(); slice.done !== true; slice = work.next()) pauses++;
          assert.ok(pauses >= least, `${pauses} pauses in ${page.length} characters`);
          return found;
        };
        const text = `${lines.join("\n")}\n`;
        const pad = "#\n".repeat(times);
        assert.equal(samples(pad + text + pad + text, Math.floor(pad.length / 131_072)), 2 * samples(text, 0));
      },
    ),
  );
});

test("a sample with too many labels or too long a line is left out and counted", () => {
  const labels = (count: number) => Array.from({ length: count }, (_, i) => `l${i}="x"`).join();
  const page = [
    `a{${labels(256)}} 1`,
    `a{${labels(257)}} 2`,
    `a{x="${"y".repeat(65_000)}"} 3`,
    `a{x="${"y".repeat(66_000)}"} 4`,
  ];
  const { samples, malformed } = read(page.join("\n"), ["a"]);
  assert.deepEqual(
    samples.map(({ value }) => value),
    [1, 3],
  );
  assert.equal(malformed, 2);
});

function escapeLabel(text: string): string {
  return text.replaceAll("\\", "\\\\").replaceAll('"', '\\"').replaceAll("\n", "\\n");
}

test("labels that are not closed make a line malformed, also behind a page that begins with a number", () => {
  const many = Array.from({ length: 2_000 }, (_one, i) => `a${i}="b"`).join(",");
  for (const labels of ['{a="b 3', '{a="b\\" 3', '{a="b",', "{", '{="b"} 3', "{a=b} 3", "{a= 3", `{${many}} 3`]) {
    const { samples, malformed } = read(`7 \nm${labels}\nm 5\n`, ["m"]);
    assert.deepEqual(samples, [{ name: "m", labels: {}, value: 5 }], labels.slice(0, 20));
    assert.equal(malformed, 1, labels.slice(0, 20));
  }
});
