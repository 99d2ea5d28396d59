import { existsSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { after } from "node:test";
import type { Browser, Page } from "playwright-core";

const CHROMIUM = "/usr/bin/chromium";

/** The reason for which tests in a browser are skipped; false where they run. */
export const withoutBrowser: string | false = existsSync(CHROMIUM) ? false : `there is no ${CHROMIUM}`;

let open: Promise<Browser> | undefined;
after(async () => (await open)?.close());

/** A browser without network of its own, one for all tests of a process: each opens pages, and closes them. */
export function openBrowser(): Promise<Browser> {
  open ??= launch();
  return open;
}

async function launch(): Promise<Browser> {
  const { chromium } = await import("playwright-core");
  const args = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"];
  return chromium.launch({ executablePath: CHROMIUM, args });
}

/** Leaves a picture in the folder that PICTURES_FOLDER names, for people to look at; else nothing. */
export async function photograph(page: Page, name: string, fullPage = true): Promise<void> {
  const folder = process.env["PICTURES_FOLDER"];
  if (folder === undefined) return;
  mkdirSync(folder, { recursive: true });
  await page.screenshot({ path: join(folder, `${name}.png`), fullPage });
}
