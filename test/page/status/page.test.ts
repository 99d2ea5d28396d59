import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import type { BrowserContextOptions, Page } from "playwright-core";
import { axeObjections, OF_COLOURS } from "../axe-objections.ts";
import { openPage, photograph, withoutBrowser } from "../browser.ts";
import type { Overview } from "#page/status/overview.ts";
import { endpointCase, fleetCase, overviewCase, rolloutCase } from "./overview-case.ts";
import { type PageServer, pageServer } from "./page-server.ts";

const ROWS = "#endpoints tbody tr:not(.detail-row)";
const WIDTHS = [1400, 768, 390];

describe("the status page in a browser", { skip: withoutBrowser }, () => {
  const ends: (() => unknown)[] = [];
  const host = { after: (end: () => unknown) => void ends.push(end) };
  let server: PageServer;
  before(async () => {
    server = await pageServer(host, overviewCase());
  });
  after(async () => {
    for (const end of ends.toReversed()) await end();
  });

  /** A page of its own, with whatever it complained of. */
  async function opened(options: BrowserContextOptions = {}) {
    const page = await openPage({ viewport: { width: 1400, height: 900 }, ...options });
    const complaints: string[] = [];
    page.on(
      "console",
      (message) => message.text().includes("Failed to load resource") || complaints.push(message.text()),
    );
    page.on("pageerror", (error) => complaints.push(String(error)));
    page.on("request", (request) => request.url().startsWith(server.address) || complaints.push(request.url()));
    await page.goto(server.address);
    return { page, complaints, close: () => page.close() };
  }

  for (const width of WIDTHS) {
    test(`${width} px: all on the screen, every control by keyboard, nothing for axe to object to, in light and in dark`, async () => {
      server.overview = overviewCase();
      const { page, complaints, close } = await opened({ viewport: { width, height: 900 }, colorScheme: "light" });
      await page.locator(ROWS).first().waitFor();
      await page.locator("#decisions button.open").first().click();
      await page.locator("#endpoints button.open").nth(1).click();
      await page.locator("#decisions .detail table").waitFor();
      assert.match(
        await page.locator("#endpoints dl.facts").innerText(),
        /What to do\s+See whether its engine still runs/,
      );
      assert.equal(await sideways(page), 0, "no sideways scroll of the page");
      assert.match(await page.locator("#traffic table").innerText(), /Llama-3\.1-8B-Instruct[^]*none that is served/);
      const arms = page.locator("#rollout figure", { hasText: "Each arm: TTFT" });
      assert.match(await arms.first().innerText(), /llm-d [\d.]+ ms[^]*gnomon [\d.]+ ms/);
      const heads = await page.locator("#endpoints thead").first().isVisible();
      assert.equal(heads, width > 700, "a table, but for narrow screens");
      for (const row of (await page.locator(ROWS).all()).slice(0, 6)) {
        const box = await row.locator(".trouble").boundingBox();
        assert.ok(box !== null && box.x >= 0 && box.x + box.width <= width, "trouble is on the screen");
      }
      assert.deepEqual(await brokenWords(page), [], "no word of a trouble goes over two lines");
      assert.deepEqual(await outsideOfCards(page), [], "no text of why goes past its card");
      assert.deepEqual(await axeObjections(page), []);
      assert.deepEqual(await unreached(page), []);
      await page.evaluate("document.activeElement.blur(); scrollTo(0, 0)");
      await photograph(page, `status-${width}-light`);
      await page.emulateMedia({ colorScheme: "dark" });
      assert.equal(await sideways(page), 0, "no sideways scroll of the page in dark");
      assert.deepEqual(await axeObjections(page, OF_COLOURS), []);
      await photograph(page, `status-${width}-dark`);
      assert.deepEqual(complaints, []);
      await close();
    });
  }

  test("trouble comes first, most serious before less, and a filter finds the rest of a large fleet", async () => {
    server.overview = overviewCase();
    const { page, close } = await opened();
    await page.locator(ROWS).first().waitFor();
    const column = (place: number) => page.locator(`${ROWS} > :nth-child(${place})`).allTextContents();
    assert.deepEqual((await column(1)).slice(0, 6), [
      "hung.example:8000",
      "lost.example:8000",
      "failing.example:8000",
      "cordoned.example:8000",
      "full.example:8000",
      "stale.example:8000",
    ]);
    assert.deepEqual((await column(2)).slice(0, 7), [
      "hung",
      "lost: connect ECONNREFUSED 10.12.0.7:8000",
      "breaker open",
      "cordoned",
      "KV cache full",
      "signals 9.0 s old; scrape: timeout after 1000 ms",
      "none",
    ]);
    assert.match(await page.title(), /^3 in trouble/);
    await page.getByRole("button", { name: "Show 92 more" }).click();
    await page.locator(ROWS).nth(103).waitFor();
    await page.getByLabel("Filter").fill("breaker");
    await page.getByText("1 of 104 shown").waitFor();
    assert.deepEqual(await column(1), ["failing.example:8000"]);
    await page.getByLabel("Filter").fill("");
    await page.getByText("104 of 104 shown").waitFor();
    await page.getByRole("button", { name: "Endpoint", exact: true }).click();
    await page.locator("#endpoints th[aria-sort=ascending]").waitFor();
    const names = await column(1);
    assert.deepEqual(names, names.toSorted());
    assert.equal(await page.locator("#endpoints th[aria-sort=ascending]").textContent(), "Endpoint");
    await close();
  });

  test("the first lines state whether all is well, who is in trouble and what to do; focus stays through news", async () => {
    const { page, close } = await opened();
    const verdict = page.locator("p.verdict");
    const states = async (change: Partial<Overview>, text: RegExp): Promise<void> => {
      server.overview = { ...overviewCase(), ...change };
      await verdict.filter({ hasText: text }).waitFor();
    };
    const { gateway, traffic } = overviewCase();
    const calm = {
      gateway: { ...gateway, requestsQueued: 0 },
      traffic: { ...traffic, lastMinute: { ...traffic.lastMinute, failed: 0, refused: 0 } },
    };
    await states({ ...calm, endpoints: [endpointCase("http://a:8000")] }, /^All is well\. Nothing to do\.$/);
    const button = page.locator("#endpoints button.open").first();
    await button.focus();
    const hung = endpointCase("http://h:8000", { standing: "hung" });
    await states(
      { ...calm, endpoints: [endpointCase("http://a:8000"), hung] },
      /1 of 2 endpoints serve little.*Look at h:8000 first: hung/,
    );
    assert.match(String(await page.evaluate("document.activeElement.textContent")), /a:8000/);
    await states({ ...calm, endpoints: [] }, /^Nothing is served/);
    const lastMinute = { ...traffic.lastMinute, requests: 100, failed: 5, refused: 1 };
    await states({ ...calm, traffic: { ...traffic, lastMinute } }, /^6 of 100 requests failed or were refused/);
    await close();
  });

  test("asks for a token, sends it in a header and never in an address, and takes a wrong one back", async () => {
    server.overview = overviewCase();
    server.token = "st-secret";
    server.asked.length = 0;
    const { page, complaints, close } = await opened();
    const field = page.getByLabel("Status token or admin token");
    await field.fill("wrong");
    await field.press("Enter");
    await page.getByText("does not accept that token").waitFor();
    const label = await page.getByText("Status token or admin token").boundingBox();
    const box = await field.boundingBox();
    assert.ok(label!.x + label!.width <= box!.x && label!.y + label!.height > box!.y, "the label is beside its field");
    await field.fill("st-secret");
    await field.press("Enter");
    await page.locator(ROWS).first().waitFor();
    assert.equal(await field.count(), 0);
    assert.ok(server.asked.length >= 3 && server.asked.every((path) => !path.includes("secret")));
    assert.equal(page.url(), server.address);
    assert.deepEqual(complaints, []);
    server.token = undefined;
    await close();
  });

  test("a gateway that is gone: since when, with what was known; all is well again when it comes back", async () => {
    server.overview = overviewCase();
    const { page, close } = await opened();
    await page.clock.install();
    await page.locator(ROWS).first().waitFor();
    server.overview = undefined;
    await page.clock.fastForward(2_100);
    await page
      .getByText(/No news from the gateway since \d\d:\d\d:\d\d UTC, for .*: out of order\. What follows/)
      .waitFor();
    assert.equal(await page.locator(ROWS).count(), 12, "what was known stays");
    assert.match((await page.getByRole("status").textContent()) ?? "", /^no news since \d\d:\d\d:\d\d UTC$/);
    assert.deepEqual(await axeObjections(page), []);
    await photograph(page, "status-gone");
    server.overview = overviewCase({ endpoints: fleetCase(1) });
    await page.clock.fastForward(10_100);
    await page.getByText("live", { exact: true }).waitFor();
    assert.equal(await page.locator(ROWS).count(), 1);
    await close();
  });

  test("a tab that nobody sees asks nothing, and at once when it is seen", async () => {
    server.overview = overviewCase();
    const { page, close } = await opened();
    await page.clock.install();
    await page.locator(ROWS).first().waitFor();
    const seen = (hidden: boolean) =>
      page.evaluate(
        `Object.defineProperty(document, "hidden", { value: ${hidden}, configurable: true }); document.dispatchEvent(new Event("visibilitychange"))`,
      );
    await seen(true);
    await page.clock.fastForward(5_000);
    const before = server.asked.length;
    await page.clock.fastForward(60_000);
    assert.equal(server.asked.length, before);
    const asked = page.waitForResponse(/overview/);
    await seen(false);
    await asked;
    await close();
  });

  test("held decisions stay; one that the gateway forgot is shown as forgotten", async () => {
    const overview = overviewCase();
    server.overview = overview;
    const { page, close } = await opened();
    await page.clock.install();
    const first = page.locator("#decisions tbody tr").first();
    await first.waitFor();
    await page.getByRole("button", { name: "Hold", exact: true }).click();
    const sequence = 1_001;
    server.overview = { ...overview, decisions: [{ ...overview.decisions[0]!, sequence, why: "the newest" }] };
    const polled = page.waitForResponse(/overview/);
    await page.clock.fastForward(2_100);
    await polled;
    assert.doesNotMatch((await first.textContent()) ?? "", /the newest/);
    await page.getByRole("button", { name: /Held/ }).click();
    await page.clock.fastForward(2_100);
    await page.getByText("the newest").waitFor();
    const detail = server.detail;
    server.detail = undefined;
    await page.locator("#decisions button.open").first().click();
    await page.getByText("The gateway no longer keeps this decision").waitFor();
    server.detail = detail;
    await close();
  });

  test("the arrow keys read a chart's moments, in words", async () => {
    server.overview = overviewCase();
    const { page, close } = await opened();
    const slider = page.getByRole("slider", { name: "Time to first token: moment" });
    await slider.focus();
    await slider.press("ArrowLeft");
    const moved = page.locator("[aria-valuetext^='14:03:10 UTC: p50 ']");
    await moved.first().waitFor();
    assert.match((await slider.getAttribute("aria-valuetext")) ?? "", /^14:03:10 UTC: p50 \d+ ms, p99 .* m?s$/);
    assert.match((await page.locator("#traffic figure").nth(1).locator(".legend").textContent()) ?? "", /14:03:10 UTC/);
    await slider.press("Escape");
    await moved.first().waitFor({ state: "detached" });
    await close();
  });

  test("names are text wherever they stand", async () => {
    const hostile = `<img src=x onerror="window.broken=1">`;
    const rollouts = [rolloutCase({ name: hostile, reason: hostile })];
    const endpoints = fleetCase(3).map((one) => ({ ...one, id: hostile, detail: hostile, state: "lost" as const }));
    server.overview = overviewCase({ endpoints, rollouts });
    const { page, complaints, close } = await opened();
    await page.locator(ROWS).first().waitFor();
    assert.equal(await page.locator("img").count(), 0);
    assert.equal(await page.evaluate("window.broken"), undefined);
    assert.deepEqual(complaints, []);
    await close();
  });
});

function sideways(page: Page): Promise<number> {
  return page.evaluate<number>("document.documentElement.scrollWidth - innerWidth");
}

/** Words of the column of troubles that go over two lines. */
function brokenWords(page: Page): Promise<string[]> {
  return page.evaluate<string[]>(`[...document.querySelectorAll("#endpoints td.trouble")].flatMap((cell) => {
    const texts = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT);
    const broken = [];
    while (texts.nextNode()) for (const word of texts.currentNode.data.matchAll(/\\S+/g)) {
      const range = document.createRange();
      range.setStart(texts.currentNode, word.index);
      range.setEnd(texts.currentNode, word.index + word[0].length);
      if (new Set(Array.from(range.getClientRects(), ({ top }) => top)).size > 1) broken.push(word[0]);
    }
    return broken;
  })`);
}

/** Texts of why that go past the right end of their card; other tables scroll. */
function outsideOfCards(page: Page): Promise<string[]> {
  return page.evaluate<string[]>(`[...document.querySelectorAll("#why td")].flatMap((cell) => {
    const range = document.createRange();
    range.selectNodeContents(cell);
    const end = cell.closest(".card").getBoundingClientRect().right;
    return range.getBoundingClientRect().right > end + 1 ? [cell.textContent] : [];
  })`);
}

/** Controls that the Tab key does not come to, or that do not show that they have the focus. */
async function unreached(page: Page): Promise<string[]> {
  const count = await page.evaluate<number>(`
    window.controls = [...document.querySelectorAll("a[href], button, input, select, [tabindex='0']")].filter((one) => one.checkVisibility());
    window.reached = new Set();
    document.addEventListener("focusin", ({ target }) => getComputedStyle(target).outlineStyle === "none" || reached.add(target));
    document.activeElement.blur();
    controls.length`);
  for (let i = 0; i < count + 2; i++) await page.keyboard.press("Tab");
  return page.evaluate<string[]>(
    "controls.filter((one) => !reached.has(one)).map((one) => one.outerHTML.slice(0, 120))",
  );
}
