import assert from "node:assert/strict";
import { ADMIN, type CommandLine } from "../cli/command-line.ts";

/** Sends a gateway that was just started one request, and asks for its status page. */
export async function assertServes(served: CommandLine): Promise<string> {
  const [, url = ""] = await served.said(/gnomon is ready at (http:\/\/[^:]+:\d+)/);
  const messages = [{ role: "user", content: "word ".repeat(100) }];
  const answer = await fetch(`${url}/v1/chat/completions`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ model: "llama-3.1-8b", messages, max_tokens: 4, stream: true }),
  });
  assert.equal(answer.status, 200);
  assert.match(await answer.text(), /data: \[DONE\]\n\n$/);
  const [, adminUrl = ""] = await served.said(ADMIN);
  const page = await (await fetch(`${adminUrl}/gnomon/`)).text();
  const [script = ""] = /[\w./-]+\/main\.[jt]s/.exec(page) ?? [];
  assert.equal((await fetch(new URL(script, `${adminUrl}/gnomon/`))).status, 200, page);
  return url;
}

/** Asks it to stop, which it does without a complaint. */
export async function assertStops(served: CommandLine): Promise<void> {
  served.child.kill("SIGTERM");
  assert.deepEqual(await served.exit, { code: 0, signal: null }, served.stderr());
}
