import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import type { Page } from "playwright-core";

const AXE = readFileSync(fileURLToPath(import.meta.resolve("axe-core/axe.min.js")), "utf8");

interface Violation {
  readonly id: string;
  readonly nodes: readonly { readonly html: string; readonly failureSummary: string }[];
}

const ALL = { resultTypes: ["violations"] };
/** For a page that all rules were tried on, in other colours. */
export const OF_COLOURS = { ...ALL, runOnly: ["color-contrast", "link-in-text-block"] };

/** What axe-core finds on the page, a line for each rule with the first element that breaks it. */
export async function axeObjections(page: Page, options: object = ALL): Promise<string[]> {
  await page.evaluate(AXE);
  const { violations } = await page.evaluate<{ violations: Violation[] }>(
    `axe.run(document, ${JSON.stringify(options)})`,
  );
  return violations.map(({ id, nodes }) => `${id} (${nodes.length}): ${nodes[0]?.html} ${nodes[0]?.failureSummary}`);
}
