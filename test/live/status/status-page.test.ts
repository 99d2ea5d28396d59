import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { STATUS_PAGE, STATUS_PAGE_POLICY } from "#live/status/status-page.ts";

const CHROMIUM = "/usr/bin/chromium";

function endpoint(id: string, more: object = {}): object {
  const signals = { freshness: "fresh", ageMillis: 100, running: 1, waiting: 0 };
  const well = { state: "ready", detail: "", cordoned: false, breaker: "closed", signals, ledger: {}, models: ["m"] };
  return { id, ...well, kvUtilization: 0.1, indexBlocks: 1, scrape: { lastError: "" }, ...more };
}

const ENDPOINTS = [
  ...Array.from({ length: 12 }, (_, i) => endpoint(`http://well-${String(i).padStart(2, "0")}:8000`)),
  endpoint("http://failing:8000", { breaker: "open" }),
  endpoint("http://stale:8000", { signals: { freshness: "stale", ageMillis: 9_000 } }),
  endpoint("http://hung:8000", { standing: "hung" }),
  endpoint("http://lost:8000", { state: "lost", detail: "connection refused", signals: undefined, breaker: undefined }),
];

const VERSION = {
  version: 2,
  at: "2026-01-02T03:04:05.000Z",
  source: "admin",
  by: "me",
  note: "",
  defaultProfile: "llm-d",
  profiles: ["gnomon", "llm-d"],
};
const POLICY = {
  inForce: { ...VERSION, document: {} },
  versions: [VERSION],
  forgotten: 0,
  refused: [
    {
      at: "2026-01-02T03:04:06.000Z",
      source: "file",
      by: "config.yaml",
      problems: ["limits.attemptsMax: expected an integer in [1, 16], got 99"],
    },
  ],
};

test(
  "trouble is at the top and beside the name, on the screen of a laptop without scrolling",
  { skip: !existsSync(CHROMIUM) },
  async (t) => {
    const server = createServer((request, response) => {
      if (request.url === "/gnomon/") {
        response.setHeader("content-security-policy", STATUS_PAGE_POLICY);
        response.setHeader("content-type", "text/html").end(STATUS_PAGE);
      } else if (request.url === "/gnomon/endpoints") response.end(JSON.stringify({ endpoints: ENDPOINTS }));
      else if (request.url === "/gnomon/policy") response.end(JSON.stringify(POLICY));
      else response.end(JSON.stringify({ decisions: [] }));
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    t.after(() => server.close());
    const { chromium } = await import("playwright-core");
    const args = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"];
    const browser = await chromium.launch({ executablePath: CHROMIUM, args });
    t.after(() => browser.close());
    const page = await browser.newPage({ viewport: { width: 1280, height: 720 } });
    const complaints: string[] = [];
    page.on("pageerror", (error) => complaints.push(String(error)));
    await page.goto(`http://127.0.0.1:${(server.address() as AddressInfo).port}/gnomon/`);
    await page.locator("#endpoints tbody tr").first().waitFor();
    assert.equal(await page.locator("#trouble").textContent(), "4 of 16 in trouble, listed first");
    const shown: string[][] = [];
    for (const row of (await page.locator("#endpoints tbody tr").all()).slice(0, 5)) {
      shown.push((await row.locator("td").allTextContents()).slice(0, 3));
      const box = await row.locator("td").nth(2).boundingBox();
      assert.ok(box !== null && box.x + box.width <= 1280 && box.y + box.height <= 720);
    }
    assert.deepEqual(shown, [
      ["http://hung:8000", "ready", "hung"],
      ["http://lost:8000", "lost", "lost: connection refused"],
      ["http://failing:8000", "ready", "breaker open"],
      ["http://stale:8000", "ready", "signals stale"],
      ["http://well-00:8000", "ready", "–"],
    ]);
    assert.equal(
      await page.locator("#policy").textContent(),
      "Version 2: llm-d, with gnomon ready. Set by admin, me at 2026-01-02 03:04:05 UTC.",
    );
    assert.equal(await page.locator("#policy-trouble").textContent(), "a change was refused since");
    assert.deepEqual(await page.locator("#versions tbody tr").first().locator("td").allTextContents(), [
      "2026-01-02 03:04:06",
      "refused",
      "file",
      "config.yaml",
      "limits.attemptsMax: expected an integer in [1, 16], got 99",
    ]);
    assert.deepEqual(complaints, []);
  },
);
