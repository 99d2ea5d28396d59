import { setTimeout as sleep } from "node:timers/promises";
import { Server, ServerCredentials, type ServerDuplexStream } from "@grpc/grpc-js";
import type { PickRequestParts } from "./pick-request.ts";
import type { Routes } from "#live/http/route.ts";
import { Addresses } from "./destination.ts";
import { PickerHealth } from "./health.ts";
import { type PickerParts, PickStream } from "./pick-stream.ts";
import { EndNotice } from "./end-notice.ts";
import { proxyServer } from "./proxy-server.ts";
import { PickerCredentials, type PickerTls } from "./picker-credentials.ts";
import { pathReader } from "./picked-path.ts";
import { EXTERNAL_PROCESSOR, HEALTH, serviceOf } from "./protocol.ts";
import type { ProcessingRequest, ProcessingResponse } from "./wire.ts";

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

type Stream = ServerDuplexStream<ProcessingRequest, ProcessingResponse>;

/** What a message holds beside the body. */
const MESSAGE_BYTES = 256 * 1024;

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
  const healthService = serviceOf("health.proto", HEALTH);
  const server = proxyServer({
    "grpc.max_receive_message_length": gateway.limits.bodyBytesMax + MESSAGE_BYTES,
    "grpc.max_send_message_length": -1,
    "grpc.max_concurrent_streams": STREAMS_PER_REQUEST * gateway.limits.requestsInFlightMax + STREAMS_MORE,
  });
  server.addService(serviceOf("external_processor.proto", EXTERNAL_PROCESSOR), {
    Process: (stream: Stream) => serve(stream, shared),
  });
  server.addService(healthService, health.handlers);
  const credentials = tls === undefined ? ServerCredentials.createInsecure() : new PickerCredentials(tls);
  const bound = await bind(server, `${host}:${port}`, credentials);
  const notice = new EndNotice(server);
  const beside = healthPort === undefined ? undefined : new Server();
  beside?.addService(healthService, health.handlers);
  const besidePort = beside && (await bind(beside, `${host}:${healthPort}`, ServerCredentials.createInsecure()));
  return {
    port: bound,
    healthPort: besidePort,
    stop: async (graceMillis, noticeMillis = 0) => {
      await notice.send();
      if (noticeMillis > 0) await sleep(noticeMillis);
      health.stop();
      beside?.forceShutdown();
      // Connections that were made meanwhile.
      await notice.send();
      await shutDown(server, graceMillis);
    },
  };
}

function serve(stream: Stream, shared: PickerParts): void {
  const pick = new PickStream(shared, (response) => {
    if (!stream.write(response)) stream.pause();
  });
  stream.on("drain", () => stream.resume());
  stream.on("data", (message: ProcessingRequest) => pick.message(message));
  stream.on("end", () => {
    pick.closed();
    stream.end();
  });
  stream.on("cancelled", () => pick.closed());
  stream.on("error", () => pick.closed());
}

function bind(server: Server, address: string, credentials: ServerCredentials): Promise<number> {
  return new Promise((resolve, reject) => {
    server.bindAsync(address, credentials, (error, port) => {
      if (error === null) resolve(port);
      else reject(error);
    });
  });
}

function shutDown(server: Server, graceMillis: number): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(() => server.forceShutdown(), graceMillis);
    server.tryShutdown(() => {
      clearTimeout(timer);
      resolve();
    });
  });
}
