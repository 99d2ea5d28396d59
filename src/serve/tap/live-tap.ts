import type { ServerResponse } from "node:http";
import type { TapStreamShared } from "#picker/tap/tap-stream.ts";
import { ConfigError } from "#config/config-error.ts";
import type { Config } from "#config/schema.ts";
import { ENGINE_FIELDS, ENGINE_HEADERS } from "#core/engine-names.ts";
import { INERT } from "#live/tap/inert-watch.ts";
import { Attribution } from "#live/tap/attribution.ts";
import { FrontIntake } from "#live/tap/front-intake.ts";
import { EngineCounts } from "#live/tap/engine-counts.ts";
import { MetricsLearner } from "#live/tap/metrics-learner.ts";
import { HeldIntake } from "#live/tap/held-intake.ts";
import { PassRoutes } from "#live/tap/pass-routes.ts";
import { routerRefusal } from "#live/tap/router-refusal.ts";
import { patientTokenizers } from "#live/tap/patient-tokenizer.ts";
import { ServedHeader } from "#live/tap/served-header.ts";
import { TappedAnswer } from "#live/tap/tapped-answer.ts";
import type { TapStatus } from "#live/metrics/metric-tap.ts";
import { EndpointDirectory, type EndpointEntry } from "#live/endpoints/endpoint-directory.ts";
import type { GatewayOptions, PassThrough } from "#live/gateway/gateway.ts";
import { errorBody, errorHeaders, refusal } from "#live/http/errors.ts";
import type { FaultLog } from "#live/log/fault-log.ts";
import type { HangDetector } from "#live/keeper/hang-detector.ts";
import type { Recorder } from "#live/recorder/recorder.ts";
import type { EngineConnections } from "#live/tls/connections.ts";
import type { Intake } from "#live/base/intake.ts";
import type { TraceRouter } from "#trace/codec/record.ts";
import { newRouter } from "../policy/live-router.ts";
import { tapFailure } from "../policy/router-intake.ts";
import { namesSources, SOURCES } from "../endpoints/source-catalogue.ts";
import { part } from "../assembly/part.ts";
import type { GatewayContext } from "../plan/gateway-context.ts";

type Answered = TapStreamShared["answered"];

/** What the gateway stands in front of: its engines, or another router. */
export interface LiveFront extends Pick<GatewayOptions, "intake" | "directory" | "hangs"> {
  /** In place of what is configured. */
  readonly options: Partial<GatewayOptions>;
  readonly limits: GatewayOptions["limits"];
  readonly tokenizer: (inner: GatewayOptions["tokenizer"]) => GatewayOptions["tokenizer"];
  /** For who observes requests that do not come through here; undefined where this gateway decides. */
  readonly observer: { readonly answered: Answered; readonly counts: { unobserved: number } } | undefined;
  /** Undefined where this gateway decides. */
  readonly status: (() => TapStatus) | undefined;
  stop(): Promise<void>;
}

interface Needed extends Pick<GatewayContext, "plan"> {
  readonly settings: TraceRouter;
  readonly intake: Intake;
  readonly directory: EndpointDirectory;
  readonly hangs: HangDetector;
  readonly tls: { readonly connections: EngineConnections };
  readonly logs: { readonly faults: Pick<FaultLog, "report"> };
  /** What is held is recorded before the recorder ends. */
  readonly recorder: Recorder | undefined;
  readonly shadow: unknown;
}

export const frontPart = part({
  name: "front",
  needs: ["plan", "settings", "intake", "directory", "hangs", "tls", "logs", "recorder", "shadow"],
  start: (needed: Needed): LiveFront => {
    const { intake, directory, hangs } = needed;
    if (intake instanceof HeldIntake) return besideOther(needed, intake);
    return {
      intake,
      directory,
      hangs,
      options: {},
      limits: {},
      tokenizer: (inner) => inner,
      observer: undefined,
      status: undefined,
      stop: async () => {},
    };
  },
  stop: (front) => front.stop(),
});

function besideOther({ plan: { config }, settings, directory, tls, logs }: Needed, held: HeldIntake): LiveFront {
  refuseOthers(config);
  const { tap, limits } = config;
  const counts = { failures: 0, untokenized: { late: 0, failed: 0 } };
  const unobserved = { unobserved: 0 };
  const failed = (error: unknown): void => {
    counts.failures++;
    logs.faults.report(tapFailure(error));
  };
  const served = new ServedHeader(directory, tap.servedHeaders);
  const learner = learnerOf(config, held, directory, tls.connections, failed);
  const attribution = new Attribution(held, served, learner);
  const answered: Answered = (requestId, headers, upstream) => {
    try {
      attribution.answered(requestId, headers, upstream);
    } catch (error) {
      failed(error);
    }
  };
  const front = new EndpointDirectory();
  const way = tap.router === undefined ? besideEnvoy() : inFrontOf(tap.router, tls.connections, config);
  if (way.router !== undefined) front.add(way.router);
  return {
    intake: new FrontIntake(newRouter(settings), attribution, failed, way.router?.id ?? ""),
    directory: front,
    hangs: INERT,
    options: {
      ...AS_IT_IS,
      passThrough: {
        answerOf: (delivery, head, requestId) => {
          answered(requestId, head.headers, undefined);
          return new TappedAnswer(delivery, head, failed);
        },
        refusalOf: routerRefusal,
        ...way.routes,
      },
    },
    limits: { attemptsMax: 1, hedgeMillis: undefined, upstreamConnectionsMax: limits.requestsInFlightMax },
    tokenizer: (inner) => patientTokenizers(inner, tap.hashMillisMax, counts.untokenized),
    observer: { answered, counts: unobserved },
    status: () => ({
      ...counts,
      ...unobserved,
      ...held.status(),
      unlisted: served.unlisted,
      unexplained: learner?.counts.unexplained ?? {},
    }),
    stop: async () => {
      held.flush();
      await Promise.all([way.stop(), learner?.stop()]);
    },
  };
}

/** How requests come by this gateway. */
interface Way {
  readonly routes: Pick<PassThrough, "serve" | "isElsewhere">;
  /** Where they go on; undefined where they do not come through. */
  readonly router: EndpointEntry | undefined;
  stop(): Promise<unknown>;
}

function inFrontOf(url: string, connections: EngineConnections, { limits }: Config): Way {
  const router = otherRouter(new URL(url).origin);
  const passRoutes = new PassRoutes(router, connections, limits.connectMillisMax);
  return { routes: { serve: passRoutes.serve, isElsewhere: false }, router, stop: () => passRoutes.destroy() };
}

/** Envoy shows requests; none comes here. */
function besideEnvoy(): Way {
  return { routes: { serve: refuseAll, isElsewhere: true }, router: undefined, stop: async () => {} };
}

function refuseAll(_incoming: unknown, outgoing: ServerResponse): void {
  const body = errorBody(ELSEWHERE);
  outgoing.writeHead(404, errorHeaders(ELSEWHERE, Buffer.byteLength(body), false)).end(body);
}

const ELSEWHERE = refusal(
  "unknown-path",
  "This observes what passes Envoy (tap.envoy.port) and takes no requests itself; metrics and status pages are on listen.adminPort.",
);

/** Nothing of a request or an answer is for this gateway to judge, add or keep. */
const AS_IT_IS: Partial<GatewayOptions> = {
  engineFields: [...ENGINE_FIELDS, ...ENGINE_HEADERS],
  sendsOwnHeaders: false,
  requestUsage: false,
  timeoutHeaders: [],
  corsOrigins: [],
  clientAuth: undefined,
  stages: {},
};

function otherRouter(url: string): EndpointEntry {
  const rest = { dataParallelRank: undefined, apiKey: undefined, detail: "", models: [] };
  return { id: url, url, state: "ready", ...rest };
}

/** Undefined where only the heads of answers are looked at. */
function learnerOf(
  { tap, scrape }: Config,
  held: HeldIntake,
  directory: EndpointDirectory,
  connections: EngineConnections,
  failed: (error: unknown) => void,
): MetricsLearner | undefined {
  if (tap.metricsMillis === 0) return undefined;
  const counts = new EngineCounts(connections, scrape.timeoutMillis, scrape.pageBytesMax);
  return new MetricsLearner({ held, directory, counts, everyMillis: tap.metricsMillis, failed });
}

/** What stands for a decision of this gateway's own, which there is none of. */
function refuseOthers(config: Config): void {
  const { tap } = config;
  if (!namesSources(config)) {
    const others = new Intl.ListFormat("en").format(SOURCES.map(({ key }) => key));
    throw new ConfigError([
      `endpoints: expected the engines behind ${tap.router ?? tap.name} (--endpoint), got none; ${others} find them too`,
    ]);
  }
  const wrong = ownDecisions(config);
  if (wrong.length === 0) return;
  const by = tap.router === undefined ? "tap.envoy.port" : "tap.router";
  throw new ConfigError(
    wrong.map((key) => `${key}: expected to be unset where ${by} is set: the other router decides`),
  );
}

/** Keys that are set and ask for decisions of this gateway's own. */
function ownDecisions({
  tap,
  picker,
  cascade,
  admission,
  rollout,
  shadow,
  autopilot,
  share,
  clients,
}: Config): string[] {
  return [
    tap.router !== undefined && tap.envoy.port !== undefined && "tap.envoy.port",
    picker.port !== undefined && "picker.port",
    cascade.chains.length > 0 && "cascade.chains",
    Object.keys(admission.limits).length > 0 && "admission.limits",
    admission.queue.enabled && "admission.queue.enabled",
    rollout.start.length > 0 && "rollout.start",
    shadow.enabled && "shadow.enabled",
    autopilot.enabled && "autopilot.enabled",
    share.url !== undefined && "share.url",
    clients.keysFile !== undefined && "clients.keysFile",
    clients.keysEnv !== undefined && "clients.keysEnv",
  ].filter((key) => key !== false);
}
