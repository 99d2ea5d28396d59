import type { EndpointDirectory } from "#live/discovery/endpoint-directory.ts";
import type { ServePlan } from "./serve-plan.ts";

export interface ReadyFacts {
  readonly url: string;
  readonly plan: ServePlan;
  /** The endpoints are emulated engines that the gateway started. */
  readonly emulated: boolean;
}

/** What a person needs first: that it is ready, a command to paste, and where the metrics are. */
export function readyText(directory: EndpointDirectory, { url, plan, emulated }: ReadyFacts): string {
  const ready = directory.all().filter((entry) => entry.state === "ready");
  const engines = `${ready.length} ${emulated ? "emulated " : ""}${ready.length === 1 ? "engine" : "engines"}`;
  const model = ready.flatMap((entry) => entry.models).map((served) => served.id)[0] ?? "MODEL";
  const body = JSON.stringify({ model, messages: [{ role: "user", content: "Hello" }], max_tokens: 32 });
  return [
    `gnomon is ready at ${url}: ${engines}, profile ${plan.profile.name}`,
    `  curl ${url}/v1/chat/completions -H 'content-type: application/json' -d '${body.replaceAll("'", "'\\''")}'`,
    `  metrics: ${url}/metrics   status: ${url}/gnomon/`,
    "",
  ].join("\n");
}

export function waitingText(url: string, waitsFor: readonly string[]): string {
  return `gnomon listens at ${url} and waits for ${waitsFor.join("; ")}\n`;
}
