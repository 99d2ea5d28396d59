import type { Endpoint, EndpointId } from "#core/endpoint/endpoint.ts";
import type { Input } from "#core/input/input.ts";
import type { Micros } from "#core/base/units.ts";
import { TraceEncoder } from "#trace/codec/encoder.ts";
import type { QueuedRecord, RecordQueue } from "./record-queue.ts";
import { routerAfter } from "#trace/transform/router-after.ts";
import { SegmentCheck } from "#trace/segment-check.ts";
import {
  TRACE_VERSION,
  type TraceEmulated,
  type TraceHash,
  type TraceMachine,
  type TraceObserved,
  type TraceRouter,
} from "#trace/codec/record.ts";

/** What stays the same from a recorder's start to its end. */
export interface RunHeader {
  /** Unique among the runs that share a folder. */
  readonly id: string;
  readonly startWallMicros: number;
  readonly router: TraceRouter;
  readonly hash: TraceHash;
  /** The engines, where they are the gateway's own emulated ones. */
  readonly emulated?: TraceEmulated;
  readonly machine?: TraceMachine;
  /** Who decides, where that is another router. */
  readonly observed?: TraceObserved;
  /** Endpoints that the router has already. */
  readonly endpoints: readonly Endpoint[];
}

/** Lines of one run that belong together. */
export interface Batch {
  readonly lines: Buffer<ArrayBuffer>;
  /** Bytes of the checksum at their end, and its value. */
  readonly checkBytes: number;
  readonly crc32: number;
  readonly records: number;
  /** Dropped records that its gaps count. */
  readonly gapRecords: number;
  /** Number of the segment that it begins; undefined when it continues one. */
  readonly segment: number | undefined;
}

/** A segment, and the checksum up to its end. */
export interface Kept {
  readonly segment: number;
  readonly crc32: number;
}

export interface RunLinesOptions {
  readonly run: RunHeader;
  /** Whether what is taken ends with its checksum. */
  readonly checked: boolean;
  readonly candidatesMax: number;
  /** Blocks that lines may refer to; TraceEncoder's own bound when left out. */
  readonly blocksMax?: number | undefined;
}

/** Lines of one run since they were last taken, and what a header must say at this point of it. */
export class RunLines {
  readonly #run: RunHeader;
  readonly #encoder: TraceEncoder;
  readonly #endpoints: Map<EndpointId, Endpoint>;
  #router: TraceRouter;
  #segment = -1;
  #records = 0;
  #gapRecords = 0;
  #begun: number | undefined;
  /** Of lines that go where they may be damaged. */
  readonly #check: SegmentCheck | undefined;

  constructor({ run, checked, candidatesMax, blocksMax }: RunLinesOptions) {
    this.#run = run;
    this.#check = checked ? new SegmentCheck() : undefined;
    this.#encoder = new TraceEncoder({ blockTokens: run.hash.blockTokens, candidatesMax, blocksMax });
    this.#endpoints = new Map(run.endpoints.map((endpoint) => [endpoint.id, endpoint]));
    this.#router = run.router;
  }

  get bytes(): number {
    return this.#encoder.lines.length;
  }

  /** Writes the header of the next segment; returns its length in bytes. What came before must be taken. */
  beginSegment(): number {
    const { id: run, startWallMicros, hash, emulated, machine, observed } = this.#run;
    const endpoints = [...this.#endpoints.values()].sort((a, b) => (a.id < b.id ? -1 : 1));
    const segment = ++this.#segment;
    this.#begun = segment;
    return this.#wrote(() =>
      this.#encoder.header({
        version: TRACE_VERSION,
        run,
        segment,
        startWallMicros,
        router: this.#router,
        hash,
        endpoints,
        ...(emulated !== undefined && { emulated }),
        ...(this.#check !== undefined && { checked: true }),
        ...(this.#check !== undefined && segment > 0 && { continues: this.#check.crc32 }),
        ...(machine && { machine }),
        ...(observed && { observed }),
      }),
    );
  }

  /** The next segment follows on this one; -1 for none. After what followed it was lost. */
  continueAfter({ segment, crc32 }: Kept): void {
    this.#segment = segment;
    this.#check?.continueAfter(crc32);
  }

  gap(at: Micros, dropped: number): number {
    this.#gapRecords += dropped;
    return this.#wrote(() => this.#encoder.gap(at, dropped));
  }

  /** Writes a queued record, after a line on how many are missing before it, and keeps the queue's account of both. */
  write({ input, decision, droppedBefore }: Omit<QueuedRecord, "bytes">, queue: RecordQueue): void {
    if (droppedBefore > 0) queue.held(this.gap(input.at, droppedBefore));
    this.#follow(input);
    const before = this.bytes;
    try {
      this.#encoder.record(input, decision);
      this.#records++;
    } catch (error) {
      if (!(error instanceof RangeError)) throw error;
      queue.lost(1);
    }
    queue.held(this.bytes - before);
  }

  /** What was written since the last call, and its checksum; undefined when nothing was, unless the run is to end. */
  take(endsRun = false): Batch | undefined {
    const { lines } = this.#encoder;
    if (lines.length === 0 && !endsRun) return undefined;
    const check = this.#check?.after(lines.view(), endsRun) ?? "";
    lines.ascii(check);
    const taken = {
      lines: lines.taken(),
      checkBytes: check.length,
      crc32: this.#check?.crc32 ?? 0,
      records: this.#records,
      gapRecords: this.#gapRecords,
      segment: this.#begun,
    };
    this.#records = 0;
    this.#gapRecords = 0;
    this.#begun = undefined;
    return taken;
  }

  /** How many bytes. */
  #wrote(write: () => void): number {
    const before = this.bytes;
    write();
    return this.bytes - before;
  }

  /** Keeps what the next segment's header states. */
  #follow(input: Input): void {
    if (input.kind === "endpoint-joined" || input.kind === "endpoint-changed")
      this.#endpoints.set(input.endpoint.id, input.endpoint);
    else if (input.kind === "endpoint-left") this.#endpoints.delete(input.endpoint);
    else this.#router = routerAfter(this.#router, input);
  }
}
