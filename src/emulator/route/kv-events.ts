import { badRequest } from "../http/api-error.ts";
import type { JsonObject } from "../http/body.ts";
import type { ServedRequest } from "../http/exchange.ts";
import { sendBody, sendJson } from "../http/reply.ts";
import type { KvPublisher } from "../kv-events/publisher.ts";
import type { Service } from "../service/service.ts";

/** GET /kv_event_sources: where each rank publishes; none, as of a server that publishes no KV events. */
export function handleEventSources(service: Service, exchange: ServedRequest): void {
  const publisher = service.host.publisher;
  sendJson(exchange, 200, JSON.stringify(publisher === undefined ? {} : { "0": publisher.source() }));
}

/**
 * POST /reset_prefix_cache, as in vLLM's development mode, where the server publishes KV events; not there otherwise.
 * Nothing happens while requests run.
 */
export function handleResetPrefixCache(service: Service, exchange: ServedRequest): void {
  if (service.host.publisher === undefined) return sendJson(exchange, 404, '{"detail":"Not Found"}');
  service.host.resetPrefixCache();
  sendBody(exchange, 200, "text/plain; charset=utf-8", "");
}

const FIELDS = ["dropShare", "paused", "replayRefused"];

/**
 * POST /emulator/kv-events {"dropShare"?: [0, 1], "paused"?: boolean, "replayRefused"?: boolean}: what goes wrong with
 * KV events from now on. Answers what is in force.
 */
export function handleKvEventFaults(service: Service, exchange: ServedRequest, body: JsonObject): void {
  const { publisher } = service.host;
  if (publisher === undefined) throw badRequest("this server publishes no KV events");
  const unknown = Object.keys(body).find((field) => !FIELDS.includes(field));
  if (unknown !== undefined) throw badRequest(`unknown field ${unknown}; accepted: ${FIELDS.join(", ")}`);
  setFaults(publisher, body);
  sendJson(exchange, 200, JSON.stringify(publisher.faults));
}

function setFaults({ faults }: KvPublisher, { dropShare, paused, replayRefused }: JsonObject): void {
  if (dropShare !== undefined && !(typeof dropShare === "number" && dropShare >= 0 && dropShare <= 1))
    throw badRequest("dropShare: accepted is a number in [0, 1]");
  if (paused !== undefined && typeof paused !== "boolean") throw badRequest("paused: accepted is true or false");
  if (replayRefused !== undefined && typeof replayRefused !== "boolean")
    throw badRequest("replayRefused: accepted is true or false");
  faults.dropShare = dropShare ?? faults.dropShare;
  faults.paused = paused ?? faults.paused;
  faults.replayRefused = replayRefused ?? faults.replayRefused;
}
