import { setTimeout as sleep } from "node:timers/promises";
import { countUp } from "#live/base/gateway-counters.ts";
import { type PickRequestShared, PROXY } from "./pick-request.ts";
import type { Routes } from "#live/http/route.ts";
import { Addresses } from "./destination.ts";
import type { CallFailure, GrpcMethod, MessageRefusal } from "./grpc/call.ts";
import { GrpcServer, type PickerTls } from "./grpc/grpc-server.ts";
import { EXTERNAL_PROCESSOR, PickerHealth } from "./health.ts";
import { type PickerShared, PickStream, type SendReplies } from "./pick-stream.ts";
import { pathReader } from "./picked-path.ts";
import type { PickerRules } from "./picker-rules.ts";
import { readProcessingRequest } from "./processing-request.ts";
import { framedResponses } from "./processing-response.ts";
import type { ProcessingRequest } from "./wire.ts";

export interface ProcessingOptions {
  /** The gateway's own: one router, one intake, one set of limits and counters. */
  readonly gateway: PickRequestShared;
  readonly host: string;
  /** 0 takes a free one. */
  readonly port: number;
  /** A port on which health alone is served, always in plain text, as Kubernetes' probes ask; undefined for none. */
  readonly healthPort: number | undefined;
  /** Undefined: plain text. */
  readonly tls: PickerTls | undefined;
  readonly rules: PickerRules;
  readonly ready: () => boolean;
}

export interface PickerOptions extends ProcessingOptions {
  readonly routes: Routes;
  /** Paths of engines' administration beside those that are known; none when left out. */
  readonly administration?: readonly string[];
  /** Endpoints named behind the chosen one, which a proxy with retries goes down. */
  readonly fallbacksMax: number;
}

export interface PickerServer {
  readonly port: number;
  readonly healthPort: number | undefined;
  /**
   * Informs proxies that their connections will end and goes on for `noticeMillis`, while they learn where else to ask; then takes
   * no new streams and waits for those that are open; cuts what is left after `graceMillis` more.
   */
  stop(graceMillis: number, noticeMillis?: number): Promise<void>;
}

/** What a message holds beside the body. */
export const MESSAGE_BYTES = 256 * 1024;
const QUESTION_BYTES = 4 * 1024;
/** Questions about health at once, and connections that bring them. */
const QUESTIONS = 1_000;

/**
 * Calls beyond the requests that may be in flight: each of those is refused with 503 and a reason, where HTTP/2's own
 * refusal would be a bare 500 of Envoy's.
 */
const CALLS_PER_REQUEST = 2;
const CALLS_MORE = 1_000;

/** Serves Envoy's external processing protocol; rejects with the system's error where the address cannot be had. */
export function startPicker(options: PickerOptions): Promise<PickerServer> {
  const { gateway, routes, administration = [], fallbacksMax } = options;
  const addresses = new Addresses(gateway.directory);
  const shared: PickerShared = { gateway, addresses, pathOf: pathReader(routes, administration), fallbacksMax };
  return startProcessing(options, (replies) => new PickStream(shared, replies));
}

/** One request of a proxy, as its messages come. */
interface ProcessedStream {
  message(message: ProcessingRequest): void;
  /** A message is not taken; false where the request has no answer for that any more. */
  refused?(why: MessageRefusal): boolean;
  closed(): void;
}

/** Serves external processing, each request by a stream of its own, and health. */
export async function startProcessing(
  options: ProcessingOptions,
  open: (replies: SendReplies) => ProcessedStream,
): Promise<PickerServer> {
  const { gateway, host, port, healthPort, tls, rules, ready } = options;
  const health = new PickerHealth(ready);
  const { limits, counters, bodies } = gateway;
  const common = {
    room: { take: (bytes: number) => bodies.take(bytes, PROXY), give: (bytes: number) => bodies.give(bytes) },
    writeStallMillisMax: limits.writeStallMillisMax,
    firstMessageMillisMax: limits.headersMillisMax,
    // By name: what else the configuration's section has would give the options of each picker a shape of their own, and the
    // code that was optimized in the warm-up would not serve the real one.
    connectionAgeMillisMax: rules.connectionAgeMillisMax,
    connectionGraceMillis: rules.connectionGraceMillis,
    pingMillis: rules.pingMillis,
    pingAnswerMillisMax: rules.pingAnswerMillisMax,
    firstFrameMillisMax: limits.headersMillisMax,
    connectionDropped: () => counters.connectionsDropped++,
    connectionRenewed: () => counters.pickerRenewed++,
    failed: (why: CallFailure, error?: unknown) => {
      countUp(counters.pickerFailures, why);
      if (why !== "defect") return;
      counters.internalErrors++;
      gateway.observe.bug?.(error);
    },
  };
  const server = new GrpcServer({
    ...common,
    methods: new Map([[`/${EXTERNAL_PROCESSOR}/Process`, processMethod(open, rules)], ...health.methods]),
    messageBytesMax: limits.bodyBytesMax + MESSAGE_BYTES,
    callsMax: CALLS_PER_REQUEST * limits.requestsInFlightMax + CALLS_MORE,
    connectionsMax: limits.clientConnectionsMax,
    tls,
  });
  const bound = await server.listen(host, port);
  const beside =
    healthPort === undefined
      ? undefined
      : new GrpcServer({
          ...common,
          methods: new Map(health.methods),
          messageBytesMax: QUESTION_BYTES,
          callsMax: QUESTIONS,
          connectionsMax: QUESTIONS,
          tls: undefined,
        });
  const besidePort = healthPort === undefined ? undefined : await beside?.listen(host, healthPort);
  return {
    port: bound,
    healthPort: besidePort,
    stop: async (graceMillis, noticeMillis = 0) => {
      await server.notify();
      if (noticeMillis > 0) await sleep(noticeMillis);
      health.stop();
      await beside?.stop(0);
      // Connections that were made meanwhile.
      await server.notify();
      await server.stop(graceMillis);
    },
  };
}

function processMethod(
  open: (replies: SendReplies) => ProcessedStream,
  { callIdleMillisMax: idleMillisMax }: PickerRules,
): GrpcMethod {
  return (call) => {
    const stream = open((responses, gone) => call.send(framedResponses(responses), gone));
    return {
      refused: (why) => stream.refused?.(why) ?? false,
      message: (bytes) => stream.message(readProcessingRequest(bytes)),
      clientEnded: () => {
        stream.closed();
        call.end();
      },
      closed: () => stream.closed(),
      idleMillisMax,
    };
  };
}
