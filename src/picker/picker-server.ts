import { setTimeout as sleep } from "node:timers/promises";
import type { PickRequestParts } from "./pick-request.ts";
import type { Routes } from "#live/http/route.ts";
import { Addresses } from "./destination.ts";
import type { GrpcMethod } from "./grpc/call.ts";
import { GrpcServer, type PickerTls } from "./grpc/grpc-server.ts";
import { EXTERNAL_PROCESSOR, PickerHealth } from "./health.ts";
import { type PickerParts, PickStream } from "./pick-stream.ts";
import { pathReader } from "./picked-path.ts";
import { readProcessingRequest } from "./processing-request.ts";
import { framedResponses } from "./processing-response.ts";

export interface PickerOptions {
  /** The gateway's own: one router, one tap, one set of limits and counters. */
  readonly gateway: PickRequestParts;
  readonly routes: Routes;
  /** Paths of engines' administration beside those that are known; none when left out. */
  readonly administration?: readonly string[];
  readonly host: string;
  /** 0 takes a free one. */
  readonly port: number;
  /** A port on which health alone is served, always in plain text, as Kubernetes' probes ask; undefined for none. */
  readonly healthPort: number | undefined;
  /** Undefined: plain text. */
  readonly tls: PickerTls | undefined;
  /** Endpoints named behind the chosen one, which a proxy with retries goes down. */
  readonly fallbacksMax: number;
  readonly ready: () => boolean;
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
const MESSAGE_BYTES = 256 * 1024;
const QUESTION_BYTES = 4 * 1024;
/** Streams of one connection that asks about health. */
const QUESTIONS = 100;

/**
 * Streams of one connection beyond the requests that may be in flight: each of those is refused with 503 and a reason,
 * where HTTP/2's own refusal would be a bare 500 of Envoy's.
 */
const STREAMS_PER_REQUEST = 2;
const STREAMS_MORE = 1_000;

/** Serves Envoy's external processing protocol; rejects with the system's error where the address cannot be had. */
export async function startPicker(options: PickerOptions): Promise<PickerServer> {
  const { gateway, routes, administration = [], host, port, healthPort, tls, fallbacksMax, ready } = options;
  const addresses = new Addresses(gateway.directory);
  const shared: PickerParts = { gateway, addresses, pathOf: pathReader(routes, administration), fallbacksMax };
  const health = new PickerHealth(ready);
  const server = new GrpcServer({
    methods: new Map([[`/${EXTERNAL_PROCESSOR}/Process`, processMethod(shared)], ...health.methods]),
    messageBytesMax: gateway.limits.bodyBytesMax + MESSAGE_BYTES,
    streamsOfConnectionMax: STREAMS_PER_REQUEST * gateway.limits.requestsInFlightMax + STREAMS_MORE,
    tls,
  });
  const bound = await server.listen(host, port);
  const limits = { messageBytesMax: QUESTION_BYTES, streamsOfConnectionMax: QUESTIONS };
  const beside =
    healthPort === undefined
      ? undefined
      : new GrpcServer({ methods: new Map(health.methods), ...limits, tls: undefined });
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

function processMethod(shared: PickerParts): GrpcMethod {
  return (call) => {
    const pick = new PickStream(shared, (...responses) => call.send(framedResponses(responses)));
    return {
      message: (bytes) => pick.message(readProcessingRequest(bytes)),
      clientEnded: () => {
        pick.closed();
        call.end();
      },
      closed: () => pick.closed(),
    };
  };
}
