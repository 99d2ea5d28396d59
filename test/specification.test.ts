import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

const PAGE = readFileSync(new URL("../src/SPECIFICATION.md", import.meta.url), "utf8");

const numbered = (prefix: string, last: number) => Array.from({ length: last }, (_, i) => `${prefix}${i + 1}`);
/** What the five documents are made of, in their order. */
const SECTIONS: Readonly<Record<string, readonly string[]>> = {
  "Composable scorer framework for weighted routing (BLIS)": [
    ...numbered("", 3),
    ...numbered("INV-", 7),
    ...numbered("D-", 5),
    ...numbered("", 12).slice(5),
  ],
  "Evolutionary policy optimization (BLIS)": [
    "A",
    ...numbered("B.", 4),
    "C",
    ...numbered("D.", 8),
    ...numbered("E.", 5),
    ...numbered("F.", 4),
    ...numbered("G.", 3),
    "H",
    ...numbered("PR ", 23),
    "J",
    ...numbered("K.", 4),
    ...numbered("L.", 3),
    "M",
    "N",
  ],
  "Cognitora: KV-aware scoring": [
    "The score",
    "overlap",
    "util",
    "norm_watts",
    "capacity",
    "Tie-break",
    "Admission",
    "Cascade",
    "Disaggregation",
    "Where the code lives",
  ],
  "LMetric: the B3 policies": ["Shared state", ...numbered("", 5), "Decision matrix", "What each control isolates"],
  "AIBrix: routing algorithms": [
    "Prefix cache aware",
    ...["TOKENIZER_TYPE", "BLOCK_SIZE", "BLOCK_NUMBER"].map((name) => `AIBRIX_PREFIX_CACHE_${name}`),
    "AIBRIX_PREFIX_CACHE_POD_RUNNING_REQUEST_IMBALANCE_ABS_COUNT",
    "AIBRIX_PREFIX_CACHE_STANDARD_DEVIATION_FACTOR",
    "VTC",
    "vtc-basic",
    "Other VTC variants",
  ],
};

test("every section of the founding documents has a row that states where it is, or why it is otherwise", () => {
  const parts = PAGE.split(/^## /m).slice(1);
  assert.deepEqual(
    parts.map((part) => part.split("\n")[0]),
    Object.keys(SECTIONS),
  );
  for (const part of parts) {
    const rows = part.split("\n").filter((line) => line.startsWith("| **"));
    const labels = rows.flatMap((row) =>
      [...row.split(" | ")[0]!.matchAll(/\*\*([^*]+)\*\*/g)].map(([, label]) => label),
    );
    assert.deepEqual(labels, SECTIONS[part.split("\n")[0]!]);
    const silent = rows.filter((row) => {
      const [, , where = "", otherwise = ""] = row.split("|").map((cell) => cell.trim());
      return where === "" && otherwise === "";
    });
    assert.deepEqual(silent, []);
  }
});

test("each of the founding documents is named by its title, with an address where a reader finds it", () => {
  const intro = PAGE.split(/^## /m)[0]!;
  const rows = intro.split("\n").filter((line) => /^\| (?!below|---)/.test(line));
  assert.equal(rows.length, Object.keys(SECTIONS).length);
  const unfound = rows.filter((row) => !/ \| "[^"]+".* \| \[[^\]]+\]\(https:\/\/\S+\)/.test(row));
  assert.deepEqual(unfound, []);
});
