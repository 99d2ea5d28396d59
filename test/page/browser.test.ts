import assert from "node:assert/strict";
import { test } from "node:test";

import { CHROMIUM, FEATURES_OFF, withoutBrowser } from "./browser.ts";

test("what Playwright turns off in a browser stays off", { skip: withoutBrowser }, async () => {
  const { chromium } = await import("playwright-core");
  const server = await chromium.launchServer({ executablePath: CHROMIUM, args: ["--no-sandbox"] });
  const [own] = server.process().spawnargs.flatMap((arg) => /^--disable-features=(.+)/.exec(arg)?.[1] ?? []);
  await server.close();
  assert.deepEqual([...new Set(own!.split(",")).difference(new Set(FEATURES_OFF))], []);
});
