import { FaultSyntaxError } from "../fault/fault.ts";
import { FAULT_RULES_MAX } from "../fault/fault-plan.ts";
import { ApiError, badRequest } from "../http/api-error.ts";
import type { JsonObject } from "../http/body.ts";
import type { ServedRequest } from "../http/exchange.ts";
import { sendJson } from "../http/reply.ts";
import type { TransferCounts } from "../kv-transfer/kv-transfer.ts";
import type { Service } from "../service/service.ts";
import type { HostLag } from "../service/step-lateness.ts";

const RULE_FIELDS = ["fault", "path", "count", "probability"];

/**
 * POST /emulator/faults {"fault": "cut=3; slow=20", "path"?: exact path, "count"?: requests, "probability"?: (0, 1]}:
 * adds a standing order. Without a path it applies to every inference route.
 */
export function handleAddFault(service: Service, exchange: ServedRequest, body: JsonObject): void {
  const { fault, path, count, probability = 1 } = body;
  const unknown = Object.keys(body).find((field) => !RULE_FIELDS.includes(field));
  if (unknown !== undefined) throw badRequest(`unknown field ${unknown}; accepted: ${RULE_FIELDS.join(", ")}`);
  if (typeof fault !== "string" || fault.trim() === "") throw badRequest("fault: accepted is a fault's text");
  if (path !== undefined && typeof path !== "string") throw badRequest("path: accepted is a path");
  if (count !== undefined && !(Number.isInteger(count) && (count as number) > 0)) {
    throw badRequest("count: accepted is an integer of 1 or more");
  }
  if (typeof probability !== "number" || !(probability > 0 && probability <= 1)) {
    throw badRequest("probability: accepted is a number in (0, 1]");
  }
  if (!addRule(service, { fault, path, count: count as number | undefined, probability })) {
    throw new ApiError(400, "BadRequestError", `there are ${FAULT_RULES_MAX} rules already; DELETE /emulator/faults`);
  }
  handleListFaults(service, exchange);
}

/** GET /emulator/faults. */
export function handleListFaults(service: Service, exchange: ServedRequest): void {
  sendJson(exchange, 200, JSON.stringify({ faults: service.faultPlan.list() }));
}

/** DELETE /emulator/faults. */
export function handleClearFaults(service: Service, exchange: ServedRequest): void {
  service.faultPlan.clear();
  handleListFaults(service, exchange);
}

/** GET /emulator/stats: what became of everything that arrived. */
export function handleStats(service: Service, exchange: ServedRequest): void {
  sendJson(exchange, 200, JSON.stringify(statsOf(service)));
}

/** Sequences, not requests: arrived = finished + aborted + failed + refused + inFlight. */
export interface EmulatorStats {
  readonly phase: string;
  readonly arrived: number;
  readonly finished: number;
  readonly aborted: number;
  readonly failed: number;
  readonly refused: number;
  readonly inFlight: number;
  readonly blocksUsed: number;
  readonly lagMillis: HostLag;
  /** Of a server with a KV connector. */
  readonly transfers?: TransferCounts;
}

export function statsOf(service: Service): EmulatorStats {
  const { arrived, ...rest } = service.host.counts;
  const { refused, phase } = service;
  const blocksUsed = service.host.gauges.kvBlocksUsed;
  const { kvTransfer, lag: lagMillis } = service.host;
  const transfers = kvTransfer && { transfers: kvTransfer.counts };
  return { phase, arrived: arrived + refused, ...rest, refused, blocksUsed, lagMillis, ...transfers };
}

function addRule(service: Service, rule: Parameters<typeof service.faultPlan.add>[0]): boolean {
  try {
    return service.faultPlan.add(rule);
  } catch (error) {
    if (error instanceof FaultSyntaxError) throw badRequest(error.message);
    throw error;
  }
}
