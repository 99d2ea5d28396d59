import type { EndpointDirectory } from "#live/endpoints/endpoint-directory.ts";
import type { ServePlan } from "../plan/serve-plan.ts";

export interface ReadyFacts {
  readonly url: string;
  /** Of status pages and administration. */
  readonly adminUrl: string;
  readonly plan: ServePlan;
  /** The endpoints are emulated engines that the gateway started. */
  readonly emulated: boolean;
}

/** What a person needs first: that it is ready, a command to paste, and where the metrics are. */
export function readyText(directory: EndpointDirectory, facts: ReadyFacts): string {
  const { url, adminUrl } = facts;
  const model = readyModels(directory)[0] ?? "MODEL";
  const body = JSON.stringify({ model, messages: [{ role: "user", content: "Hello" }], max_tokens: 32 });
  return [
    readySentence(directory, facts),
    `  curl ${url}/v1/chat/completions -H 'content-type: application/json' -d '${body.replaceAll("'", "'\\''")}'`,
    `  metrics: ${url}/metrics   status: ${adminUrl}/gnomon/`,
    "",
  ].join("\n");
}

export function waitingText(url: string, waitsFor: readonly string[]): string {
  return `${waitingSentence(url, waitsFor)}\n`;
}

/** The same for a collector of logs, as one line of JSON. */
export function readyLine(directory: EndpointDirectory, facts: ReadyFacts): string {
  const { url, adminUrl, plan, emulated } = facts;
  return line("ready", readySentence(directory, facts), {
    url,
    adminUrl,
    endpoints: readyEntries(directory).length,
    endpointsKnown: directory.all().length,
    emulated,
    profile: plan.profile.name,
    models: readyModels(directory).slice(0, MODELS_NAMED_MAX),
  });
}

export function waitingLine(url: string, waitsFor: readonly string[]): string {
  return line("waiting", waitingSentence(url, waitsFor), { url, waitsFor });
}

const MODELS_NAMED_MAX = 16;

/** In the shape of the log's lines. */
function line(event: string, msg: string, fields: Readonly<Record<string, unknown>>): string {
  return `${JSON.stringify({ level: "info", time: new Date().toISOString(), event, ...fields, msg })}\n`;
}

function readySentence(directory: EndpointDirectory, { url, plan, emulated }: ReadyFacts): string {
  const [ready, all] = [readyEntries(directory).length, directory.all().length];
  const count = ready === all ? `${ready}` : `${ready} of ${all}`;
  const engines = `${count} ${emulated ? "emulated " : ""}${all === 1 ? "engine" : "engines"}`;
  const { tap } = plan.config;
  if (tap.router !== undefined)
    return `gnomon is ready at ${url}, in front of ${tap.name} at ${tap.router}: ${engines}`;
  if (tap.envoy.port !== undefined) return `gnomon is ready beside Envoy, in which ${tap.name} decides: ${engines}`;
  return `gnomon is ready at ${url}: ${engines}, profile ${plan.profile.name}`;
}

function waitingSentence(url: string, waitsFor: readonly string[]): string {
  return `gnomon listens at ${url} and waits for ${waitsFor.join("; ")}`;
}

function readyEntries(directory: EndpointDirectory) {
  return directory.all().filter((entry) => entry.state === "ready");
}

function readyModels(directory: EndpointDirectory): string[] {
  return [...new Set(readyEntries(directory).flatMap((entry) => entry.models.map((served) => served.id)))];
}
