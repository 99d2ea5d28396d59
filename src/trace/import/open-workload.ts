import type { TrafficRequest } from "../transform/traffic.ts";
import type { WorkloadRequest } from "../workload-request.ts";
import { readAccessLog } from "./access-log.ts";
import { readAzure } from "./azure.ts";
import { byConversation } from "./by-conversation.ts";
import { readBlisTrace } from "./blis-trace.ts";
import { detectFormat } from "./detect-format.ts";
import type { ImportOptions } from "./import-options.ts";
import { ImportError, ImportReport } from "./import-report.ts";
import { readDynamo } from "./dynamo.ts";
import { readLmcache } from "./lmcache.ts";
import { readBailian, readMooncake } from "./mooncake.ts";
import { readBlisSpec } from "./read-blis-spec.ts";
import { readOtelSpans } from "./otel-spans.ts";
import { readShareGpt } from "./sharegpt.ts";
import { readSynthetic } from "./synthetic.ts";
import { readTokenIds } from "./token-ids.ts";
import { readVllmBench } from "./vllm-bench.ts";
import { openVllmRun } from "./vllm-run.ts";
import { readWeka } from "./weka.ts";
import { readWorkloadFile } from "./workload-file.ts";

export interface OpenedWorkload {
  /** Filled while the requests are read; complete when they end. */
  readonly report: ImportReport;
  /** The requests, once, read as they are asked for. */
  readonly requests: AsyncGenerator<WorkloadRequest>;
}

/** Opens a trace file, a folder of sessions or a synthetic specification; throws ImportError when it is none. */
export async function openWorkload(path: string, options: ImportOptions): Promise<OpenedWorkload> {
  const { format, files } = await detectFormat(path);
  const report = new ImportReport(path, format, options.strict);
  const [first = path] = files;
  switch (format) {
    case "mooncake":
      return { report, requests: readMooncake(first, options, report) };
    case "bailian":
      return { report, requests: readBailian(first, options, report) };
    case "azure":
      return { report, requests: readAzure(first, report) };
    case "weka":
      return { report, requests: readWeka(files, options, report) };
    case "lmcache":
      return { report, requests: byConversation(readLmcache(files, options, report)) };
    case "token-ids":
      return { report, requests: readTokenIds(first, report) };
    case "blis":
      return { report, requests: byConversation(requestsOf(readBlisTrace(first, report))) };
    case "blis-result":
      throw new ImportError(`${path}: ${RESULTS_ALONE}`);
    case "workload":
      return { report, requests: byConversation(readWorkloadFile(first, report)) };
    case "vllm-bench":
      return { report, requests: readVllmBench(first, report) };
    case "dynamo":
      return { report, requests: byConversation(readDynamo(files, report)) };
    case "otel-spans":
      return { report, requests: readOtelSpans(first, report) };
    case "nginx":
    case "envoy":
    case "llm-d":
      return { report, requests: requestsOf(inTurn((await readAccessLog(first, format, report)).requests)) };
    case "vllm-run":
      return { report, requests: requestsOf((await openVllmRun(first, options, report)).traffic) };
    case "sharegpt":
      return { report, requests: readShareGpt(first, options, report) };
    case "blis-spec":
      return { report, requests: readBlisSpec(first, options, report) };
    case "synthetic":
      return { report, requests: readSynthetic(first, options, report) };
  }
}

/** Why results are no workload. */
export const RESULTS_ALONE =
  "expected a workload, got results, which do not hold when requests were sent; trace import with --arrivals and the " +
  "TraceV2 that was replayed makes a trace of both";

async function* inTurn<T>(values: readonly T[]): AsyncGenerator<T> {
  yield* values;
}

async function* requestsOf(traffic: AsyncIterable<TrafficRequest>): AsyncGenerator<WorkloadRequest> {
  for await (const { request } of traffic) yield request;
}
