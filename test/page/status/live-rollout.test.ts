import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { resolve } from "node:path";
import { type TestContext, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import type { Locator, Page } from "playwright-core";
import { axeObjections } from "../axe-objections.ts";
import { openPage, photograph, withoutBrowser } from "../browser.ts";

const MAIN = resolve(import.meta.dirname, "../../../bin/gnomon.js");
const ADMIN = "admin-secret";
const LOOK = "look-secret";
/** So few, with a pause behind each request, that the browser has the machine; a window takes three requests of each arm. */
const SENDERS = 2;
const PAUSE_MILLIS = 20;

const ROLLOUT = {
  name: "prefixes-or-not",
  arms: [
    { name: "as-it-is", profile: "gnomon" },
    { name: "in-turn", profile: "round-robin" },
  ],
  design: { kind: "switchback", windowMillis: 400, washoutMillis: 40 },
  baselineMillis: 0,
  settleMillis: 100,
  windowSamplesMin: 3,
  plannedCount: 4,
  guardrails: [{ figure: "error-rate", absoluteMaxShare: 0.5, samplesMin: 10 }],
};

/** A gateway of its own over an emulated fleet that is quick. */
async function startedGateway(t: TestContext): Promise<{ readonly url: string; readonly adminUrl: string }> {
  const settings = [
    "emulate.count=1",
    "emulate.timeScale=20",
    "emulate.outputTokensMean=8",
    "admin.tokenEnv=ADMIN",
    "admin.statusTokenEnv=LOOK",
  ];
  const args = [MAIN, "serve", "--port", "0", "--log-level", "info", ...settings.flatMap((one) => ["--set", one])];
  const env = { ...process.env, GNOMON_LISTEN_WARM_UP_MILLIS: "0", ADMIN, LOOK };
  const gateway: ChildProcess = spawn(process.execPath, args, { env, stdio: ["ignore", "pipe", "pipe"] });
  t.after(() => gateway.kill("SIGKILL"));
  let output = "";
  return new Promise((ready, failed) => {
    const read = (text: Buffer): void => {
      output += text.toString();
      const found = /"url":"([^"]+)","adminUrl":"([^"]+)"/.exec(output);
      if (found !== null) ready({ url: found[1]!, adminUrl: found[2]! });
    };
    gateway.stdout!.on("data", read);
    gateway.stderr!.on("data", read);
    gateway.once("exit", () => failed(new Error(output)));
  });
}

async function post(
  address: string,
  path: string,
  body: object,
  headers: Record<string, string> = {},
): Promise<unknown> {
  const answer = await fetch(address + path, {
    method: "POST",
    body: JSON.stringify(body),
    headers: { "content-type": "application/json", ...headers },
  });
  const text = await answer.text();
  assert.equal(answer.status, 200, `${path}: ${text}`);
  return JSON.parse(text);
}

/** Only a stream shows when its first token came. */
async function streamed(address: string, body: object): Promise<void> {
  const headers = { "content-type": "application/json" };
  const answer = await fetch(`${address}/v1/chat/completions`, { method: "POST", body: JSON.stringify(body), headers });
  assert.match(await answer.text(), /\[DONE\]/);
}

function asAdmin(by: string): Record<string, string> {
  return { authorization: `Bearer ${ADMIN}`, "x-gnomon-by": by };
}

/** Requests one after another from several senders until it is stopped. */
function traffic(address: string): () => Promise<void> {
  const end = new AbortController();
  const sender = async (number: number): Promise<void> => {
    for (let i = 0; !end.signal.aborted; i++) {
      const content = `conversation ${number}: ${"word ".repeat(200)} ${i}`;
      await streamed(address, {
        model: "llama-3.1-8b",
        max_tokens: 8,
        stream: true,
        messages: [{ role: "user", content }],
      });
      await sleep(PAUSE_MILLIS);
    }
  };
  const all = Promise.all(Array.from({ length: SENDERS }, (_, i) => sender(i)));
  return async () => {
    end.abort();
    await all;
  };
}

async function opened(page: Page, address: string): Promise<void> {
  await page.goto(`${address}/gnomon/`);
  await page.getByLabel("Status token or admin token").fill(LOOK);
  await page.getByRole("button", { name: "Show", exact: true }).click();
  await page.locator("#rollout article").waitFor();
}

/** Who may only look is asked for the token of administration; what ends a rollout is asked for twice. */
async function orderedByButtons(page: Page, rollout: Locator): Promise<void> {
  assert.match((await rollout.locator(".done").textContent()) ?? "", /\d+ of \d+ blocks/);
  assert.match((await rollout.locator(".health").textContent()) ?? "", /^Health: /);
  assert.equal(await page.getByRole("group", { name: "Start a rollout" }).count(), 0, "one is under way");
  await rollout.getByRole("button", { name: "Pause", exact: true }).click();
  await rollout.getByLabel("Token of administration").fill(ADMIN);
  await rollout.locator("form").getByRole("button", { name: "Pause", exact: true }).click();
  await rollout.getByText("paused", { exact: true }).waitFor();
  await rollout.getByRole("button", { name: "Roll back", exact: true }).click();
  await rollout.getByRole("button", { name: "Sure? Roll back", exact: true }).waitFor();
  assert.equal(await rollout.getByText("paused", { exact: true }).count(), 1, "nothing happened yet");
  assert.deepEqual(await axeObjections(page), []);
  await rollout.getByRole("button", { name: "Go on", exact: true }).click();
  await rollout.getByText("running", { exact: true }).waitFor();
}

test("a rollout of a real gateway, from its first window to who promoted it", { skip: withoutBrowser }, async (t) => {
  const viewport = { width: 1400, height: 900 };
  const [{ url, adminUrl }, page] = await Promise.all([startedGateway(t), openPage({ viewport })]);
  await post(adminUrl, "/gnomon/admin/rollout", ROLLOUT, asAdmin("ana@example.org"));
  const stop = traffic(url);
  t.after(() => page.close());
  const complaints: string[] = [];
  page.on("pageerror", (error) => complaints.push(String(error)));
  await opened(page, adminUrl);
  const rollout = page.getByRole("article", { name: "Rollout prefixes-or-not" });
  await rollout.getByText("running", { exact: true }).waitFor();
  await rollout.getByText(/Switchback: .* windows of 0\.4 s/).waitFor();
  // Two blocks of windows, one of each arm in a block, have an interval.
  await rollout.locator("figure").first().locator("polygon.area").waitFor();
  const counts = await rollout.locator("tbody td[data-label=Requests]").allTextContents();
  assert.equal(counts.length, 2);
  assert.ok(
    counts.every((text) => Number(text.replaceAll(",", "")) >= 2 * ROLLOUT.windowSamplesMin),
    counts.join(),
  );
  assert.match((await rollout.locator("td[data-label=Limit]").first().textContent()) ?? "", /at most 50 %/);
  for (const [width, colorScheme] of [
    [1400, "light"],
    [1400, "dark"],
    [390, "light"],
    [390, "dark"],
  ] as const) {
    await page.setViewportSize({ width, height: 900 });
    await page.emulateMedia({ colorScheme });
    assert.equal(await page.evaluate("document.documentElement.scrollWidth - innerWidth"), 0);
    if (colorScheme === "dark") assert.deepEqual(await axeObjections(page), []);
    await photograph(page, `rollout-${width}-${colorScheme}`);
  }
  await orderedByButtons(page, rollout);
  await stop();
  await post(
    adminUrl,
    "/gnomon/admin/rollout/prefixes-or-not/promote",
    { arm: "as-it-is", reason: "it is quicker" },
    asAdmin("bo@example.org"),
  );
  await rollout.getByText("promoted", { exact: true }).waitFor();
  const steps = await rollout.locator(".steps li").allTextContents();
  assert.match(steps[0]!, /^promote as-it-is by bo@example\.org.*it is quicker$/);
  assert.ok(
    steps.some((text) => text.startsWith("start by ana@example.org")),
    steps.join("; "),
  );
  const start = page.getByRole("group", { name: "Start a rollout" });
  await start.getByLabel("Name").fill("again");
  await start.getByLabel("Profile beside the policy").fill("no-such-profile");
  await start.getByLabel("Design").selectOption("switchback");
  await start.getByRole("button", { name: "Start", exact: true }).click();
  await start.getByText(/no-such-profile/).waitFor();
  assert.deepEqual(await axeObjections(page), []);
  await start.getByLabel("Profile beside the policy").fill("round-robin");
  await start.getByRole("button", { name: "Start", exact: true }).click();
  await page.getByRole("article", { name: "Rollout again" }).waitFor();
  assert.deepEqual(complaints, []);
});
