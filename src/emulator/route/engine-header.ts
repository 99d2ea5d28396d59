import { badRequest } from "../http/api-error.ts";
import type { ServedRequest } from "../http/exchange.ts";
import type { HeaderList } from "../http/reply.ts";
import { pythonFloat } from "../generation/sampling.ts";
import { headerText, type Service } from "../service/service.ts";

/** One engine, hence one rank. */
const RANKS = 1;

/** Throws ApiError 400 for a data-parallel rank that this server does not have. */
export function checkDataParallelRank(exchange: ServedRequest): void {
  const rank = headerText(exchange, "x-data-parallel-rank");
  if (!/^-?\d+$/.test(rank)) return;
  const value = Number(rank);
  if (value < 0 || value >= RANKS) throw badRequest(`data_parallel_rank ${value} is out of range [0, ${RANKS}).`);
}

/** ORCA's load report, on bodies only, where the client asked for it. */
export function loadHeaders(service: Service, exchange: ServedRequest): HeaderList {
  const format = headerText(exchange, "endpoint-load-metrics-format");
  if (format !== "TEXT" && format !== "JSON") return [];
  const { waiting, kvUtilization } = service.host.gauges;
  const values = [pythonFloat(waiting), pythonFloat(kvUtilization)] as const;
  const text = `named_metrics.num_requests_waiting=${values[0]}, named_metrics.kv_cache_usage_perc=${values[1]}`;
  const json = `{"named_metrics": {"num_requests_waiting": ${values[0]}, "kv_cache_usage_perc": ${values[1]}}}`;
  return ["endpoint-load-metrics", format === "TEXT" ? `TEXT ${text}` : `JSON ${json}`];
}
