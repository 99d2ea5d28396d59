import { existsSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import type { TestContext } from "node:test";
import type { Browser, Page } from "playwright-core";

const CHROMIUM = "/usr/bin/chromium";

/** The reason for which tests in a browser are skipped; false where they run. */
export const withoutBrowser: string | false = existsSync(CHROMIUM) ? false : `there is no ${CHROMIUM}`;

/** A browser without network of its own, which ends with the test. */
export async function openBrowser(t: Pick<TestContext, "after">): Promise<Browser> {
  const { chromium } = await import("playwright-core");
  const args = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"];
  const browser = await chromium.launch({ executablePath: CHROMIUM, args });
  t.after(() => browser.close());
  return browser;
}

/** Leaves a picture in the folder that PICTURES_FOLDER names, for people to look at; else nothing. */
export async function photograph(page: Page, name: string, fullPage = true): Promise<void> {
  const folder = process.env["PICTURES_FOLDER"];
  if (folder === undefined) return;
  mkdirSync(folder, { recursive: true });
  await page.screenshot({ path: join(folder, `${name}.png`), fullPage });
}
