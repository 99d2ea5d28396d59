import { setTimeout } from "node:timers/promises";
import type { Config } from "#config/schema.ts";
import type { EndpointDirectory } from "#live/endpoints/endpoint-directory.ts";
import { NOT_ASKED } from "#live/keeper/member.ts";
import type { Readiness } from "#live/status/readiness.ts";
import { namesSources } from "../endpoints/source-catalogue.ts";
import { type ReadyFacts, readyLine, readyText, waitingLine, waitingText } from "./ready-text.ts";
import { part } from "../assembly/part.ts";
import type { GatewayContext } from "../plan/gateway-context.ts";
import { flushCompileCache } from "node:module";
import type { Listening } from "../clients/listening.ts";

const READY_POLL_MILLIS = 25;
/** Without an endpoint by then, what is missing is reported. */
const WAITING_REPORTED_MILLIS = 3_000;
/** A ready gateway reports how many engines it has once each was asked, or after as long. */
const ENGINES_ASKED_MILLIS = 5_000;

interface Announced {
  readonly directory: EndpointDirectory;
  readonly readiness: Pick<Readiness, "draining" | "waitsFor">;
}

/** Reports what is under way until the gateway is ready, to somebody who sits at a terminal. */
export function announceStart(
  url: string,
  config: Config,
  out: Pick<NodeJS.WriteStream, "isTTY" | "write"> = process.stdout,
): void {
  if (!out.isTTY) return;
  const { count } = config.emulate;
  const emulated = count === 1 ? "an emulated engine" : `${count} emulated engines`;
  const engines = namesSources(config) ? "looks for its engines" : `starts ${emulated}`;
  const warms =
    config.listen.warmUpMillis === 0 ? "" : ", and warms up so that the first requests are as fast as all others";
  out.write(`gnomon listens at ${url}, ${engines}${warms} ...\n`);
}

/** Reports when the gateway is ready, and before that, once, what it waits for; in JSON where nobody sits at a terminal. */
export async function announce(
  { directory, readiness }: Announced,
  facts: ReadyFacts,
  out: Pick<NodeJS.WriteStream, "isTTY" | "write"> = process.stdout,
): Promise<void> {
  const since = performance.now();
  let reported = false;
  for (;;) {
    const waitsFor = readiness.waitsFor();
    if (readiness.draining) return;
    if (waitsFor.length === 0) break;
    if (!reported && performance.now() - since > WAITING_REPORTED_MILLIS) {
      reported = true;
      out.write((out.isTTY ? waitingText : waitingLine)(facts.url, waitsFor));
    }
    await setTimeout(READY_POLL_MILLIS);
  }
  const countedBy = performance.now() + ENGINES_ASKED_MILLIS;
  while (!allAsked(directory) && performance.now() < countedBy && !readiness.draining) {
    await setTimeout(READY_POLL_MILLIS);
  }
  out.write((out.isTTY ? readyText : readyLine)(directory, facts));
}

function allAsked(directory: EndpointDirectory): boolean {
  return directory.all().every(({ state, detail }) => state !== "waiting" || detail !== NOT_ASKED);
}

interface Begun extends Pick<GatewayContext, "plan"> {
  readonly listening: Listening;
}

/** Reports that the gateway listens, before what takes longer. */
export const startAnnouncementPart = part({
  name: "startAnnouncement",
  needs: ["plan", "listening"],
  start: ({ plan, listening }: Begun) => announceStart(listening.url, plan.config),
});

interface Ready extends Begun, Announced {
  readonly endpoints: { readonly emulated: boolean };
  readonly watching: unknown;
}

/** Reports once it is ready, which may be much later. */
export const announcementPart = part({
  name: "announcement",
  needs: ["plan", "listening", "directory", "readiness", "endpoints", "watching"],
  start: ({ plan, listening, endpoints, ...announced }: Ready) => {
    const over = announce(announced, { ...listening, plan, emulated: endpoints.emulated }).then(() => {
      // What was compiled helps the next start, also after an end by force.
      flushCompileCache();
    });
    return { over };
  },
  stop: ({ over }) => over,
});
