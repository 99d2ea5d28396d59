import { parentPort, workerData } from "node:worker_threads";
import { MICROS_PER_MILLI } from "#core/units.ts";
import { TraceDecoder } from "#trace/decoder.ts";
import type { Candidate } from "./candidate.ts";
import { RunBook } from "./recorded-run.ts";
import { Replay } from "./replay.ts";
import type { FromShadow, ShadowWork, ToShadow } from "./shadow-message.ts";
import { whatIf } from "./what-if.ts";

/** The thread beside the gateway: it replays all that it hears, and now and then asks what other profiles would do. */
const work = workerData as ShadowWork;
const replay = new Replay();
let decoder: TraceDecoder | undefined;
let book = new RunBook(work.windowRequests);

parentPort?.on("message", (message: ToShadow) => {
  for (const line of message.text.split("\n")) if (line !== "") take(line);
  tell({ kind: "taken", chars: message.text.length, parity: parity() });
});
setInterval(
  () => void evaluate().catch((error: unknown) => tell({ kind: "failed", detail: String(error) })),
  work.intervalMillis,
);

function take(line: string): void {
  if (line.startsWith(HEADER_START)) {
    decoder = new TraceDecoder(line);
    book = new RunBook(work.windowRequests);
    for (const endpoint of decoder.header.endpoints) book.endpoints.set(endpoint.id, endpoint);
    replay.take({ kind: "run", header: decoder.header });
    return;
  }
  const item = decoder?.decode(line);
  if (item === undefined) return;
  replay.take(item);
  if (item.kind === "gap") book.leave("dropped on the way to the shadow", item.dropped);
  else book.take(item.input, item.decision?.kind === "routed" ? item.decision.endpoint : undefined);
}

/** Every trace begins with a header, and only a header begins so. */
const HEADER_START = '{"kind":"header"';

async function evaluate(): Promise<void> {
  if (decoder === undefined || book.requests < work.requestsMin) return;
  const startedAt = performance.now();
  const { header, workload, observed, endpoints, fleetEvents } = book.close(decoder.header);
  const { router } = header;
  const spec = router.profiles[router.defaultProfile];
  if (spec === undefined) return;
  const inForce: Candidate = { name: router.defaultProfile, spec };
  const answer = await whatIf({
    setting: {
      seed: router.seed,
      workload,
      endpoints,
      fleetEvents,
      engine: work.engine,
      signals: {
        mode: "scrape",
        intervalMicros: work.scrapeMillis * MICROS_PER_MILLI,
        phase: "spread",
        delayMicros: 0,
        lossShare: 0,
      },
      blockTokens: router.blockTokens,
      staleAfterMicros: router.staleAfterMicros,
      requestMicros: 0,
      answerMicros: 0,
      rateScale: 1,
    },
    inForce,
    candidates: work.candidates,
    observed,
    threadsMax: 1,
  });
  tell({ kind: "evaluated", answer, millis: performance.now() - startedAt });
}

function parity() {
  const { decisions, differences, unverifiable } = replay.result();
  return { decisions, differences, unverifiable };
}

function tell(message: FromShadow): void {
  parentPort?.postMessage(message);
}
