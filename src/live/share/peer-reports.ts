import type { PeerNews } from "#core/request/peer-news.ts";
import { nowMicros } from "../base/clock.ts";
import type { Intake } from "../base/intake.ts";
import { Apart } from "./apart.ts";
import { WireError } from "#trace/codec/byte-reader.ts";
import { OtherVersionError, readHead, ReportDecoder, type ReportHead } from "./report-decoder.ts";
import type { PeerRow, ShareCounts, ShareEvent } from "./share-status.ts";
import { WIRE_VERSION } from "./report.ts";

export interface PeerReportsOptions {
  readonly intake: Intake;
  readonly replica: string;
  readonly epoch: number;
  readonly fingerprint: number;
  readonly leaseMillis: number;
  readonly counts: ShareCounts;
  /** An own report came back. */
  readonly own: (sequence: number) => void;
  /** A replica came, and asks for a snapshot. */
  readonly came: () => void;
  readonly report: (event: ShareEvent) => void;
}

/** One life of another replica, and what reads its reports: past ones, and those that come. */
interface Replica {
  readonly epoch: number;
  readonly decoder: ReportDecoder;
  /** When a report of it was read last. */
  readAt: number;
  /** Reports of it came since this replica listens. */
  isPresent: boolean;
  /** What it reported as used of limits, until its snapshot comes. */
  windows: readonly PeerNews[];
}

/** Replicas whose reports are read. */
const REPLICAS_MAX = 256;
/** Of past reports, prompts that reach the router in one input. */
const PAST_NEWS_MAX = 1_024;
/** The name under which the router learns of prompts that were sent before it listened. */
const PAST = "(past)";

/** Reads what other replicas sent, keeps account of who is there, and brings the news to the router. */
export class PeerReports {
  readonly #options: PeerReportsOptions;
  readonly #replicas = new Map<string, Replica>();
  #past: PeerNews[] = [];
  #pastSequence = 0;
  #pastEpoch = 0;
  readonly apart: Apart;

  constructor(options: PeerReportsOptions) {
    this.#options = options;
    this.apart = new Apart(options.report, REPLICAS_MAX);
  }

  rows(now: number): Omit<PeerRow, "requestsInFlight">[] {
    return [...this.#replicas].flatMap(([replica, { readAt, isPresent }]) =>
      isPresent ? [{ replica, silentMillis: now - readAt }] : [],
    );
  }

  received(bytes: Buffer, isPast: boolean): void {
    const { counts } = this.#options;
    counts.reportsReceived++;
    counts.bytesReceived += bytes.length;
    try {
      const { head, rest } = readHead(bytes);
      if (!this.#isKin(head, isPast)) return;
      if (isPast) this.#takePast(head, rest);
      else this.#take(head, rest);
    } catch (error) {
      if (error instanceof OtherVersionError) return this.#otherVersion(error, isPast);
      if (!(error instanceof WireError)) throw error;
      counts.reportsUnreadable++;
      if (counts.reportsUnreadable === 1) {
        this.#options.report({ kind: "sharing-refused", detail: `a report cannot be read: ${error.message}` });
      }
    }
  }

  /** The past is read: what comes from here on is as it happens. */
  caughtUp(): void {
    this.#learnPast();
    if (this.#pastSequence > 0) this.#options.intake.accept({ kind: "peer-left", at: nowMicros(), peer: PAST });
    this.#pastSequence = 0;
    this.#pastEpoch++;
  }

  /** Forgets replicas of which nothing came within the lease. */
  expire(now: number): void {
    this.apart.expire(now - this.#options.leaseMillis);
    for (const [name, { readAt, isPresent }] of this.#replicas) {
      if (now - readAt <= this.#options.leaseMillis) continue;
      if (isPresent) this.#options.counts.leasesEnded++;
      this.#left(name);
    }
  }

  /** Hashes, sessions and tenants of others mean nothing here, unless they are made alike. */
  #isKin({ kind, fingerprint, replica, epoch, sequence }: ReportHead, isPast: boolean): boolean {
    if (fingerprint !== this.#options.fingerprint) {
      this.#options.counts.reportsForeign++;
      if (isPast) return false;
      if (kind === "bye") this.apart.left(replica);
      else this.apart.seen(replica, "settings", "its prefix.secretEnv, prefix.blockHash or tokenizer differs");
      return false;
    }
    if (replica !== this.#options.replica) return true;
    if (epoch === this.#options.epoch) this.#options.own(sequence);
    else if (!isPast) this.apart.seen(replica, "name", "it has this gateway's own name: share.replica must differ");
    return epoch !== this.#options.epoch;
  }

  #otherVersion({ version, replica }: OtherVersionError, isPast: boolean): void {
    this.#options.counts.reportsOtherVersion++;
    const each = "each of the two counts limits by itself, so both may let in what one is to";
    const why = `it sends version ${version}, this gateway reads ${WIRE_VERSION}: ${each}`;
    if (!isPast) this.apart.seen(replica, "version", why);
  }

  #take(head: ReportHead, rest: Parameters<ReportDecoder["news"]>[0]): void {
    const { replica, epoch, kind, sequence } = head;
    if (replica === this.#options.replica) return;
    if (kind === "bye") return this.#left(replica);
    const from = this.#replicaOf(replica, epoch);
    if (from === undefined) return;
    from.isPresent = true;
    const { decoder } = from;
    if (kind === "hello") this.#options.came();
    if (kind === "alive" && !rest.isAtEnd) from.windows = decoder.news(rest);
    if (kind !== "news" && kind !== "snapshot") return;
    const { intake, counts } = this.#options;
    const unknown = decoder.chainsUnknown;
    const news = decoder.news(rest);
    counts.chainsUnknown += decoder.chainsUnknown - unknown;
    const report = { kind: "peer-reported", at: nowMicros(), peer: replica, epoch, sequence } as const;
    if (kind === "news") intake.accept({ ...report, news });
    else if (intake.router.peers.lacksSnapshot(replica) || this.#hasWindows(from, replica))
      intake.accept({ ...report, snapshot: true, news: [...from.windows, ...news] });
    // Nothing was missed: the snapshot holds nothing that is not known.
    else intake.accept({ ...report, news: [] });
    if (kind === "snapshot") from.windows = [];
  }

  /** It reported what was used before this replica started, and nothing was taken over from it yet. */
  #hasWindows({ windows, epoch }: Replica, replica: string): boolean {
    return windows.length > 0 && this.#options.intake.router.peers.windows.lacks(replica, epoch);
  }

  /** Undefined for a life that was followed by another one, or beyond REPLICAS_MAX. */
  #replicaOf(name: string, epoch: number): Replica | undefined {
    let replica = this.#replicas.get(name);
    if (replica === undefined && this.#replicas.size >= REPLICAS_MAX) return undefined;
    if (replica !== undefined && replica.epoch > epoch) return undefined;
    if (replica?.epoch !== epoch) {
      const isPresent = replica?.isPresent ?? false;
      replica = { epoch, decoder: new ReportDecoder(), readAt: 0, isPresent, windows: [] };
      this.#replicas.set(name, replica);
    }
    replica.readAt = performance.now();
    return replica;
  }

  /** What was sent where in the past is still in caches; what was in flight then comes with snapshots. */
  #takePast(head: ReportHead, rest: Parameters<ReportDecoder["news"]>[0]): void {
    if (head.kind !== "news") return;
    const from = this.#replicaOf(head.replica, head.epoch);
    if (from === undefined) return;
    for (const one of from.decoder.news(rest)) {
      if ((one.kind !== "charged" && one.kind !== "held") || one.blocks.length === 0) continue;
      const { endpoint, session, blocks } = one;
      this.#past.push({ kind: "held", endpoint, session, blocks });
      this.#options.counts.chainsPast++;
    }
    if (this.#past.length >= PAST_NEWS_MAX) this.#learnPast();
  }

  #learnPast(): void {
    if (this.#past.length === 0) return;
    const news = this.#past;
    this.#past = [];
    const head = { kind: "peer-reported", at: nowMicros(), peer: PAST, epoch: this.#pastEpoch } as const;
    this.#options.intake.accept({ ...head, sequence: ++this.#pastSequence, news });
  }

  #left(name: string): void {
    const replica = this.#replicas.get(name);
    this.#replicas.delete(name);
    if (replica?.isPresent === true) this.#options.intake.accept({ kind: "peer-left", at: nowMicros(), peer: name });
  }
}
