import type { ServedRequest } from "../http/exchange.ts";
import { sendBody, sendEmpty, sendJson } from "../http/reply.ts";
import { renderCacheConfig } from "../metrics/cache-config.ts";
import { renderProcess } from "../metrics/process-metrics.ts";
import type { Service } from "../service/service.ts";

/** GET /health, /ping. A draining server answers 200 too: a router cannot see a drain here. */
export function handleHealth(_service: Service, exchange: ServedRequest): void {
  sendEmpty(exchange, 200);
}

/** GET /version. */
export function handleVersion(service: Service, exchange: ServedRequest): void {
  sendJson(exchange, 200, JSON.stringify({ version: service.options.version }));
}

/** GET /load: answers in progress, 0 unless the server tracks them. */
export function handleLoad(service: Service, exchange: ServedRequest): void {
  const load = service.options.serverLoadTracking ? service.load : 0;
  sendJson(exchange, 200, JSON.stringify({ server_load: load }));
}

/** GET /metrics. */
export function handleMetrics(service: Service, exchange: ServedRequest): void {
  const { running, waiting, kvUtilization, preemptionsReported } = service.host.gauges;
  const { sleep } = service;
  const waits = waiting + sleep.waiting;
  const gauges = { running, waiting: waits, kvUsage: kvUtilization, preemptions: preemptionsReported };
  const state = { ...gauges, sleep: sleep.state };
  const page = [
    renderProcess(service.startedAtSeconds),
    service.engineMetrics.render(state),
    service.adapterMetrics?.render() ?? "",
    renderCacheConfig(service.options.engine),
    service.httpMetrics.render(),
  ].join("");
  sendBody(exchange, 200, "text/plain; version=1.0.0; charset=utf-8", page);
}
