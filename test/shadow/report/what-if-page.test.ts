import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { before, test } from "node:test";
import { pathToFileURL } from "node:url";
import { loadEngine } from "#config/engine-file.ts";
import { loadProfile } from "#config/profile-file.ts";
import { randomFor } from "#core/base/random.ts";
import type { Candidate, CandidateOutcome, Setting } from "#shadow/candidate/candidate.ts";
import { divergences } from "#shadow/report/divergence.ts";
import { loadCharts, loadLegend } from "#shadow/report/load-chart.ts";
import type { PageData } from "#shadow/report/page-data.ts";
import { whatIfPage } from "#shadow/report/what-if-page.ts";
import { axeObjections } from "../../page/axe-objections.ts";
import { openPage, photograph, withoutBrowser } from "../../page/browser.ts";
import { type WhatIfAnswer, whatIf } from "#shadow/question/what-if.ts";
import { LENGTHS_ONLY, type WorkloadRequest } from "#trace/workload-request.ts";

/** A name that would break out of an attribute and run a script, were it not escaped. */
const HOSTILE = `"><script>window.broken = 1</script>&'`;
const PROFILES: readonly Candidate[] = ["gnomon", "round-robin", "lmetric"].map((name) => {
  const { spec } = loadProfile(name);
  return { name: name === "lmetric" ? HOSTILE : name, spec };
});

const SCALED: Candidate = { ...PROFILES[0]!, name: "scaled", scenario: { label: `half ${HOSTILE}`, rateScale: 0.5 } };

let answer: WhatIfAnswer;
let data: PageData;

before(async () => {
  const setting = settingOf(workloadOf(7, 160));
  let outcomes: readonly CandidateOutcome[] = [];
  const question = {
    setting,
    inForce: PROFILES[0]!,
    candidates: [...PROFILES.slice(1), SCALED],
    replicas: 4,
    regret: { decisions: 5, alternatives: 2 },
    threadsMax: 1,
  };
  const first = await whatIf({ ...question, observed: undefined, onOutcomes: (all) => (outcomes = all) });
  const [base] = outcomes;
  assert.ok(base !== undefined && first.requests === 160);
  const observed = Array.from(setting.workload, (request, i) => ({
    endpoint: setting.endpoints[base.endpoint[i]!]!.id,
    ok: true,
    ttftMicros: 1.2 * base.ttftMicros[i]!,
    e2eMicros: 1.2 * base.e2eMicros[i]!,
    outputTokens: request.outputTokens,
    cachedTokens: base.cachedTokens[i]!,
    attempts: 1,
    retriedMicros: 0,
  }));
  answer = await whatIf({ ...question, observed });
  data = {
    trace: HOSTILE,
    engine: "emulated-default",
    outcomes,
    observed,
    observedArrivalMicros: Float64Array.from(setting.workload, ({ arrivalMicros }) => arrivalMicros),
    promptTokens: Float64Array.from(setting.workload, ({ promptTokens }) => promptTokens),
    endpoints: setting.endpoints.map(({ id }) => id),
    divergences: divergences(setting, PROFILES, outcomes, 4),
    notes: [`3 left out: ${HOSTILE}`],
  };
});

test("the page allows itself its own style and script, by their hashes, and names no address", () => {
  const page = whatIfPage(answer, data);
  const policy = /content="(default-src 'none'[^"]*)"/.exec(page)?.[1] ?? "";
  for (const element of ["style", "script"]) {
    const found = [...page.matchAll(new RegExp(`<${element}>([^]*?)</${element}>`, "g"))];
    assert.equal(found.length, 1, `one ${element}`);
    const hash = createHash("sha256").update(found[0]![1]!).digest("base64");
    assert.ok(policy.includes(`${element}-src 'sha256-${hash}'`), `${element} is allowed`);
  }
  assert.doesNotMatch(page, /\s(?:src|href|style|on[a-z]+)=|url\(|@import/);
});

test("names are text wherever they stand", () => {
  const page = whatIfPage(answer, data);
  assert.equal(page.includes(HOSTILE), false);
  assert.ok(page.includes("&quot;&gt;&lt;script&gt;window.broken = 1&lt;/script&gt;&amp;&#39;"));
});

test("every profile and what was observed is in every figure, and no number is broken", () => {
  const page = whatIfPage(answer, data);
  assert.equal(page.match(/<polyline class="line (?:live|s\d)"/g)?.length, 3 * (PROFILES.length + 2), "three CDFs");
  assert.equal(page.match(/aria-label="Requests in flight/g)?.length, PROFILES.length + 2, "a load drawing each");
  assert.equal(page.match(/aria-label="Difference of/g)?.length, 3, "a difference drawing per metric");
  assert.equal(page.match(/<rect class="band"/g)?.length, 3, "the model's error in each of them");
  const regretted = answer.candidates.filter(({ regret }) => (regret?.worst.length ?? 0) > 0).length;
  assert.equal(page.match(/<article/g)?.length, data.divergences.length + regretted);
  assert.ok(data.divergences.length > 0, "profiles part somewhere");
  assert.doesNotMatch(page, /NaN|Infinity|undefined|\[object/);
});

test("intervals, the order's sureness, causes and regret are there, and gone where nothing is known", () => {
  const page = whatIfPage(answer, data);
  assert.equal(page.match(/<small>[^<]+–[^<]+<\/small>/g)?.length, 9 * (PROFILES.length + 1), "a range each figure");
  assert.equal(page.match(/(?:inside|outside)<\/span>/g)?.length, 9, "held against what was observed");
  assert.match(page, /No model error covers half &quot;/);
  assert.match(page, /(?:lost|found) prefix/);
  assert.match(page, /Regret by outcome/);
  const bare = answer.candidates.map((one) => ({
    ...one,
    regret: undefined,
    causes: [],
    intervals: { ttftMicros: undefined, tpotMicros: undefined, e2eMicros: undefined },
    differenceInterval: { ttftMicros: undefined, tpotMicros: undefined, e2eMicros: undefined },
  }));
  const without = whatIfPage({ ...answer, replicas: 0, coverage: undefined, candidates: bare }, data);
  assert.doesNotMatch(without, /Regret by outcome|lost prefix|inside<\/span>|NaN|undefined/);
  assert.match(without, /No prediction intervals/);
});

test("a sentence stands under differences that the means above them do not subtract to, and there alone", () => {
  const meansOf = (ttftMicros: number): WhatIfAnswer => {
    const candidates = answer.candidates.map((one) => {
      const { ttftMicros: ttft, ...others } = one.predicted;
      const predicted = {
        ...others,
        ttftMicros: ttft && { ...ttft, mean: one.name === answer.inForce ? 0 : ttftMicros },
      };
      const difference = {
        ttftMicros: { ...one.difference.ttftMicros!, mean: 5_000 },
        tpotMicros: undefined,
        e2eMicros: undefined,
      };
      return one.name === answer.inForce ? { ...one, predicted } : { ...one, predicted, difference };
    });
    return { ...answer, candidates };
  };
  assert.match(whatIfPage(meansOf(5_200), data), /do not subtract to these/);
  assert.doesNotMatch(whatIfPage(meansOf(5_000), data), /do not subtract to these/);
});

test("every line of a distribution rises from 0 to 1", () => {
  for (const [, text] of whatIfPage(answer, data).matchAll(
    /<polyline class="line (?:live|s\d)"[^>]*points="([^"]*)"/g,
  )) {
    const points = text!.split(" ").map((pair) => pair.split(",").map(Number));
    for (let i = 1; i < points.length; i++) {
      assert.ok(points[i]![0]! >= points[i - 1]![0]!, "time never falls");
      assert.ok(points[i]![1]! <= points[i - 1]![1]!, "the share never falls");
    }
  }
});

test("an endpoint that left and came back is one endpoint: its requests are one line, observed and simulated", () => {
  const { endpoints, outcomes } = data;
  const moved = outcomes.map((one) => ({
    ...one,
    endpoint: one.endpoint.map((e) => (e === 0 ? endpoints.length : e)),
  }));
  const again = { ...data, endpoints: [...endpoints, endpoints[0]!], outcomes: moved };
  assert.equal(loadCharts(again), loadCharts(data));
  assert.equal(loadLegend(again), loadLegend(data));
  assert.match(whatIfPage(answer, again), new RegExp(`160 requests, ${endpoints.length} endpoints`));
});

test("a request is in flight at its endpoint from its arrival to its end, and nowhere else", () => {
  const [first] = data.outcomes;
  const span = 1_000_000;
  for (const [from, length] of [
    [0, span],
    [span / 2, span / 2],
    [0.3 * span, 0.7 * span],
    [0.999 * span, 0.001 * span],
  ] as const) {
    const alone = first!.e2eMicros.map((_, row) => (row === 0 ? length : NaN));
    const arrivalMicros = first!.arrivalMicros.map((_, row) => (row === 0 ? from : 0));
    const endpoint = first!.endpoint.map(() => 0);
    const one = { ...first!, e2eMicros: alone, arrivalMicros, endpoint };
    const chart = loadCharts({ ...data, observed: undefined, outcomes: [one] });
    const lines = [...chart.matchAll(/<polyline[^>]*points="([^"]*)"/g)].map(([, points]) =>
      points!.split(" ").map((pair) => Number(pair.split(",")[1])),
    );
    const [heights, ...others] = lines;
    const bottom = Math.max(...lines.flat());
    const top = Math.min(...others.flat(), 8);
    const mean = heights!.reduce((sum, y) => sum + (bottom - y) / (bottom - top), 0) / heights!.length;
    assert.ok(from === 0 || Math.abs(mean - length / span) < 0.01, `${mean} of ${length / span}`);
    for (const other of others) assert.ok(other.every((y) => y === bottom));
  }
});

test("what the model's error leaves out is reported by reason", () => {
  const page = whatIfPage({ ...answer, uncompared: { "given up by <b>": 12 } }, data);
  assert.match(page, /not in the model's error:<\/p><ul><li>12 given up by &lt;b&gt;<\/li>/);
  assert.doesNotMatch(whatIfPage({ ...answer, uncompared: {} }, data), /not in the model's error/);
});

test("divergences are requests on which the two decided otherwise", () => {
  for (const { base, other } of data.divergences) {
    assert.ok(base.decision.kind === "routed" && other.decision.kind === "routed");
    assert.notEqual(base.decision.endpoint, other.decision.endpoint);
    assert.equal(base.profile, "gnomon");
  }
});

test("the same answer is the same page, and one without observation states it", () => {
  assert.equal(whatIfPage(answer, data), whatIfPage(answer, data));
  const page = whatIfPage({ ...answer, modelError: undefined }, { ...data, observed: undefined });
  assert.match(page, /error is not known/);
  assert.doesNotMatch(page, /class="band"|NaN/);
});

test(
  "a browser shows it in light and dark, at any width, and axe has nothing to object to",
  { skip: withoutBrowser },
  async (t) => {
    const folder = mkdtempSync(join(tmpdir(), "gnomon-page-"));
    t.after(() => rmSync(folder, { recursive: true, force: true }));
    const file = join(folder, "page.html");
    writeFileSync(file, whatIfPage(answer, data));
    const grounds = new Set<string>();
    for (const [width, colorScheme] of [
      [390, "light"],
      [1400, "dark"],
    ] as const) {
      const page = await openPage({ colorScheme, viewport: { width, height: 800 } });
      const complaints: string[] = [];
      page.on("console", (message) => complaints.push(message.text()));
      page.on("pageerror", (error) => complaints.push(String(error)));
      page.on("request", (request) => request.url().startsWith("file:") || complaints.push(request.url()));
      await page.goto(pathToFileURL(file).href);
      grounds.add(await page.evaluate<string>("getComputedStyle(document.body).backgroundColor"));
      assert.equal(
        await page.evaluate("document.documentElement.scrollWidth > innerWidth"),
        false,
        "no sideways scroll",
      );
      assert.equal(await page.evaluate("window.broken"), undefined);
      assert.deepEqual(await axeObjections(page), []);
      await photograph(page, `what-if-${width}-${colorScheme}`);
      const lines = page.locator('polyline[data-series="gnomon"]');
      assert.equal(await lines.first().isVisible(), true);
      await page.locator('button[data-key="gnomon"]').click();
      assert.equal(await lines.first().isVisible(), false, "a key hides its series");
      assert.deepEqual(complaints, []);
      await page.close();
    }
    assert.equal(grounds.size, 2, "light and dark differ");
  },
);

function settingOf(workload: readonly WorkloadRequest[]): Setting {
  const engine = loadEngine("emulated-default");
  return {
    seed: 3,
    workload,
    endpoints: ["http://a:8000", "http://b:8000", "http://c:8000"].map((id) => ({
      id,
      models: [],
      labels: {},
      kvCapacityTokens: undefined,
      concurrencyMax: undefined,
    })),
    fleetEvents: [],
    engine,
    signals: { mode: "scrape", intervalMicros: 200_000, phase: "spread", delayMicros: 0, lossShare: 0 },
    blockTokens: engine.blockTokens,
    staleAfterMicros: 5_000_000,
    requestMicros: 0,
    answerMicros: 0,
    rateScale: 1,
    residuals: { windowMicros: 1e6, windows: [[0.1, -0.1]], levelError: 0.05, delayError: 0, prefillError: 0 },
  };
}

/** Requests over a few shared prefixes of unequal popularity. */
function workloadOf(seed: number, count: number): WorkloadRequest[] {
  const random = randomFor(seed, 1);
  let arrivalMicros = 0;
  return Array.from({ length: count }, (_, index) => {
    arrivalMicros += random.below(60_000);
    const group = random.below(1 + random.below(5));
    const blocks = 4 + random.below(40);
    return {
      ...LENGTHS_ONLY,
      index,
      arrivalMicros,
      promptTokens: 16 * blocks,
      outputTokens: 2 + random.below(60),
      blockIds: Float64Array.from({ length: blocks }, (_, block) =>
        block < 20 ? group * 100 + block : 1e6 + 100 * index + block,
      ),
    };
  });
}
