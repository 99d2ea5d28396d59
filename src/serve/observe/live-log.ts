import { type Logger, destination, pino, stdTimeFunctions } from "pino";
import type { BreakerChange } from "#core/endpoint/breaker.ts";
import type { EndpointId } from "#core/endpoint/endpoint.ts";
import { MICROS_PER_MILLI } from "#core/base/units.ts";
import { framesOf } from "#live/log/frames-of.ts";
import type { RequestObserver } from "#live/log/request-observer.ts";
import type { KeeperEvent } from "#live/endpoints/keeper-event.ts";
import { type FaultEvent, FaultLog } from "#live/log/fault-log.ts";
import type { LogCounts } from "#live/metrics/metric-logs.ts";
import type { GatewayMetrics } from "#live/metrics/metrics.ts";
import type { Config } from "#config/schema.ts";
import { type AccessLog, openAccessLog } from "./access-log.ts";
import { part } from "../assembly/part.ts";
import type { GatewayContext } from "../plan/gateway-context.ts";
import type { Readiness } from "#live/status/readiness.ts";
import type { Breakers } from "../policy/live-router.ts";

const STDERR = 2;

/** A gateway's own log, and how many of its lines were dropped. */
export interface OpenLog {
  readonly log: Logger;
  readonly dropped: () => number;
}

/**
 * One JSON line each to stderr, with ISO time and the level's name. Synchronous: nothing is lost as the process ends.
 * Requests matter more than lines: one that cannot be written, as on a full disk, is dropped and counted.
 */
export function openLog({ level }: Config["log"], fd = STDERR): OpenLog {
  const options = {
    level,
    base: null,
    timestamp: stdTimeFunctions.isoTime,
    formatters: { level: (name: string) => ({ level: name }) },
  };
  let dropped = 0;
  let lines = opened();
  return { log: pino(options, { write: (line: string) => lines.write(line) }), dropped: () => dropped };

  function opened(): Pick<ReturnType<typeof destination>, "write"> {
    const own = destination({ fd, sync: true });
    own.on("error", (error: NodeJS.ErrnoException) => {
      if (lines !== own) return;
      dropped++;
      // One that failed would keep the line, and all that come after it.
      lines = READER_GONE.has(error.code) ? { write: () => ++dropped > 0 } : opened();
    });
    return own;
  }
}

/** A closed pipe or terminal, where no line will be read again. */
const READER_GONE: ReadonlySet<string | undefined> = new Set(["EPIPE", "EIO"]);

/** What a running gateway writes beside its own log. */
export interface LiveLogs {
  readonly log: Logger;
  readonly faults: FaultLog;
  readonly access: AccessLog | undefined;
  readonly counts: LogCounts;
  /** Writes what is only counted or still waits. */
  close(): void;
}

function openLogs(options: Config["log"], { log, dropped }: OpenLog): LiveLogs {
  const faults = new FaultLog({ write: (level, fields, message) => log[level](fields, message) });
  const access = openAccessLog(options);
  const close = (): void => {
    faults.close();
    access?.close();
  };
  return {
    log,
    faults,
    access,
    counts: { withheld: () => faults.withheld, dropped, accessDropped: () => access?.dropped() ?? 0 },
    close,
  };
}

export const logsPart = part({
  name: "logs",
  needs: ["plan", "log", "logLinesDropped"],
  start: ({ plan, log, logLinesDropped: dropped }: Pick<GatewayContext, "plan" | "log" | "logLinesDropped">) =>
    openLogs(plan.config.log, { log, dropped }),
  stop: (logs) => logs.close(),
});

/** What the gateway does about each event of an endpoint or its source. */
const DONE_ABOUT: Readonly<Record<KeeperEvent["kind"], string>> = {
  waiting: "it is asked again, with growing pauses",
  ready: "requests go there",
  lost: "no request goes there until it answers again; it comes back with an empty prefix index",
  removed: "no request goes there; those in flight go on",
  refused: "it is left out",
  cordoned: "it gets no new requests; those in flight go on",
  uncordoned: "requests go there again",
  asleep: "it gets no new requests until its page shows that it is awake; those without a byte go elsewhere",
  awake: "requests go there again",
  unhealthy: "it gets no new requests while enough others may serve",
  healthy: "requests go there again",
  "adapter-failed": "it serves without that adapter",
  "source-failed": "the endpoints known so far stay; the source is tried again",
  "source-missing": "its endpoints leave as the cluster takes them away; while none is left the gateway is not ready",
  "source-recovered": "its endpoints are followed again",
};

function faultOfKeeper({ kind, subject, detail }: KeeperEvent): FaultEvent {
  const isSource = kind === "source-failed" || kind === "source-missing" || kind === "source-recovered";
  return { kind: isSource ? kind : `endpoint-${kind}`, endpoint: subject, detail, done: DONE_ABOUT[kind] };
}

function faultOfBreaker(endpoint: EndpointId, change: BreakerChange): FaultEvent {
  if (change.state === "closed") {
    return { kind: "breaker-closed", endpoint, detail: "it served a request", done: "requests go there again" };
  }
  return {
    kind: "breaker-open",
    endpoint,
    detail: `its requests fail, the last by ${change.fault}`,
    done: "it gets no request while another endpoint may serve, and then one at a time to try it",
    figures: { pauseMillis: change.pauseMicros / MICROS_PER_MILLI },
  };
}

/** Takes what happens to endpoints and their sources, for the log and for /readyz; breakers are logged with them. */
export const reportPart = part({
  name: "report",
  needs: ["logs", "readiness", "breakers"],
  start: ({ logs: { faults }, readiness, breakers }: Reporting) => {
    breakers.add((endpoint, change) => faults.report(faultOfBreaker(endpoint, change)));
    return (event: KeeperEvent): void => {
      readiness.note(event);
      faults.report(faultOfKeeper(event));
    };
  },
});

interface Reporting {
  readonly logs: LiveLogs;
  readonly readiness: Readiness;
  readonly breakers: Breakers;
}

/**
 * Metrics and the last minutes' figures for every request, a line for every fault, and a line for every request where
 * that is asked for.
 */
export function requestObserver(
  metrics: GatewayMetrics,
  traffic: Pick<Required<RequestObserver>, "finished" | "fault">,
  { log, faults, access }: LiveLogs,
): RequestObserver {
  const debug = log.isLevelEnabled("debug");
  return {
    finished: (summary) => {
      metrics.finished(summary);
      traffic.finished(summary);
      access?.write(summary);
      if (debug) log.debug(summary, "request");
    },
    retried: (fault) => metrics.retried(fault),
    tokenizerFellBack: (model) => metrics.tokenizerFellBack(model),
    fault: (event) => {
      traffic.fault(event);
      faults.report(event);
    },
    bug: (error) => log.error({ frames: framesOf(error) }, "a bug in the request path"),
  };
}
