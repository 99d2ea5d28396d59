import { existsSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { after } from "node:test";
import type { Browser, BrowserContextOptions, Page } from "playwright-core";

export const CHROMIUM = "/usr/bin/chromium";
/** For what takes a second: only a page that is broken waits as long, however busy the machine is. */
const WAITED_MILLIS_MAX = 120_000;
/**
 * What appears below an address bar as one types, a page of its own in each window: half of the CPU that a new page takes.
 * And what Playwright turns off, since the last list of an option is the one that counts (browser.test.ts compares them).
 */
export const FEATURES_OFF: readonly string[] = `
  WebUIOmniboxPopup WebUIOmniboxAimPopup WebUIOmniboxFullPopup
  AimEnabled AvoidCorsURLLoaderRestartOnRedirect AvoidUnnecessaryBeforeUnloadCheckSync DestroyProfileOnBrowserClose
  HttpsFirstBalancedModeAutoEnable HttpsUpgrades LensOverlay MediaRouter NetworkTimeServiceQuerying OptimizationHints
  PaintHolding PreconnectToSearch TcpPortRandomizationWin ThirdPartyStoragePartitioning
  msEdgeUpdateLaunchServicesPreferredVersion msForceBrowserSignIn
`
  .trim()
  .split(/\s+/);

/** The reason for which tests in a browser are skipped; false where they run. */
export const withoutBrowser: string | false = existsSync(CHROMIUM) ? false : `there is no ${CHROMIUM}`;

let open: Promise<Browser> | undefined;
after(async () => (await open)?.close());

/** A page in a context of its own, in the one browser of a process, which has no network of its own. */
export async function openPage(options: BrowserContextOptions): Promise<Page> {
  open ??= launch();
  const page = await (await open).newPage(options);
  page.setDefaultTimeout(WAITED_MILLIS_MAX);
  return page;
}

async function launch(): Promise<Browser> {
  const { chromium } = await import("playwright-core");
  const args = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"];
  args.push(`--disable-features=${FEATURES_OFF.join()}`);
  return chromium.launch({ executablePath: CHROMIUM, args, timeout: WAITED_MILLIS_MAX });
}

/** Leaves a picture in the folder that PICTURES_FOLDER names, for people to look at; else nothing. */
export async function photograph(page: Page, name: string, fullPage = true): Promise<void> {
  const folder = process.env["PICTURES_FOLDER"];
  if (folder === undefined) return;
  mkdirSync(folder, { recursive: true });
  await page.screenshot({ path: join(folder, `${name}.png`), fullPage });
}
