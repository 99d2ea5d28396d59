import { newShareCounts, type ShareCounts, type ShareEvent, type ShareStatus } from "./share-status.ts";
import { setTimeout as pause } from "node:timers/promises";
import { windowsOf } from "#core/admission/windows-elsewhere.ts";
import type { Decision } from "#core/input/decision.ts";
import type { BreakerChange } from "#core/endpoint/breaker.ts";
import type { EndpointId } from "#core/endpoint/endpoint.ts";
import type { Input } from "#core/input/input.ts";
import { OwnNews } from "#core/peer/own-news.ts";
import { Unreported } from "#core/peer/unreported.ts";
import type { PeerNews } from "#core/request/peer-news.ts";
import type { Intake, IntakeListener } from "../base/intake.ts";
import { nowMicros } from "../base/clock.ts";
import { KeptLimits, type KeptLimitsOptions } from "./kept-limits.ts";
import { PeerReports } from "./peer-reports.ts";
import { ReportEncoder } from "./report-encoder.ts";
import type { ReportKind } from "./report.ts";
import type { ShareLink, ShareListener } from "./share-link.ts";

export interface ShareTimes {
  /** News wait so long for others to go with them. */
  readonly flushMillis: number;
  /** Without news, a sign of life is sent so often. */
  readonly aliveMillis: number;
  /** A replica of which nothing came for so long is gone. */
  readonly leaseMillis: number;
  /** All that is in flight is sent so often. */
  readonly snapshotMillis: number;
}

export interface FleetShareOptions extends ShareTimes {
  readonly intake: Intake;
  readonly link: ShareLink;
  /** Unique among the replicas of a fleet. */
  readonly replica: string;
  /** When this life of it began, in milliseconds since 1970. */
  readonly epoch: number;
  /** As of Report. */
  readonly fingerprint: number;
  /** The link was lost, found again, or reports came that cannot be read. */
  readonly report: (event: ShareEvent) => void;
  /** Where what limits have counted outlives all replicas; left out, it does not. */
  readonly limits?: Pick<KeptLimitsOptions, "store" | "keptMillis" | "writeMillis">;
}

/** News beyond these in one flush are sent as they are: a batch of a size that others take at once. */
const NEWS_PER_REPORT_MAX = 4_096;
const CATCH_UP_MILLIS_MAX = 2_000;
/** Own reports that have not come back for so many leases are taken for lost. */
const RETURN_LEASES = 2;
/** What a server answers that does not let this replica do something: READONLY, NOAUTH, OOM ... */
const REFUSAL = /^[A-Z]{3,} /;
/** Replicas that come within this time share one snapshot. */
const HELLO_MILLIS = 50;

/**
 * One replica among several: sends what its router does, and brings what the others sent into the router as inputs. While
 * the link is away the router goes on by its own view; once it is back, a snapshot sets right what was missed.
 */
export class FleetShare implements IntakeListener, ShareListener {
  readonly counts: ShareCounts = newShareCounts();
  readonly lag = new LagWatch();
  readonly #options: FleetShareOptions;
  readonly #own = new OwnNews();
  readonly #unreported = new Unreported();
  readonly #encoder = new ReportEncoder();
  readonly #peers: PeerReports;
  readonly #kept: KeptLimits | undefined;
  #sequence = 0;
  #state: "starting" | "shared" | "alone" = "starting";
  #lostAt = 0;
  #aloneWhy = "";
  #snapshotDue = true;
  /** A replica came that may know nothing of what was used. */
  #windowsDue = false;
  #sentAt = 0;
  #waitsSince = 0;
  #flushTimer: NodeJS.Timeout | undefined;
  #helloTimer: NodeJS.Timeout | undefined;
  #timers: NodeJS.Timeout[] = [];
  readonly #caughtUp = Promise.withResolvers<void>();
  readonly #tookOver = Promise.withResolvers<void>();

  constructor(options: FleetShareOptions) {
    this.#options = options;
    this.#peers = new PeerReports({
      ...options,
      counts: this.counts,
      own: (sequence) => this.lag.received(sequence),
      came: () => this.#helloed(),
    });
    const { limits, replica, report } = options;
    this.#kept =
      limits &&
      new KeptLimits({
        intake: options.intake,
        ...limits,
        writes: () => this.#state === "shared" && this.#peers.rows(0).every((row) => replica < row.replica),
        refused: (detail) => report({ kind: "sharing-refused", detail }),
      });
    if (this.#kept === undefined) this.#tookOver.resolve();
    options.intake.listen(this);
  }

  /** Resolves when what others had sent and limits had counted is known, or after CATCH_UP_MILLIS_MAX. */
  async start(): Promise<void> {
    const { link, aliveMillis, leaseMillis, snapshotMillis } = this.#options;
    this.#lostAt = performance.now();
    link.start(this);
    this.#timers = [
      setInterval(() => this.#alive(), aliveMillis),
      setInterval(() => this.#peers.expire(performance.now()), Math.max(10, leaseMillis / 8)),
      setInterval(() => this.#snapshotSoon(), snapshotMillis),
    ];
    for (const timer of this.#timers) timer.unref();
    const isReady = Promise.all([this.#caughtUp.promise, this.#tookOver.promise]);
    await Promise.race([isReady, pause(CATCH_UP_MILLIS_MAX, undefined, { ref: false })]);
  }

  async stop(): Promise<void> {
    for (const timer of this.#timers) clearInterval(timer);
    this.#flush();
    clearTimeout(this.#flushTimer);
    clearTimeout(this.#helloTimer);
    this.#flushTimer = undefined;
    await this.#kept?.stop(this.#state === "shared");
    if (this.#state === "shared") this.#send("bye", []);
    this.#state = "alone";
    await this.#options.link.stop();
  }

  status(): ShareStatus {
    const { intake, replica, link } = this.#options;
    return {
      replica,
      link: link.name,
      state: this.#state,
      aloneMillis: this.#state === "shared" ? 0 : performance.now() - this.#lostAt,
      ...(this.#state === "alone" && { aloneWhy: this.#aloneWhy }),
      lagMillis: this.lag.millis,
      peers: this.#peers.rows(performance.now()).map((row) => ({
        ...row,
        requestsInFlight: intake.router.peers.requestsOf(row.replica),
      })),
      counts: { ...this.counts, ...intake.router.peers.counts },
      blocksWritten: this.#encoder.blocksWritten,
      blocksKnown: this.#encoder.blocksKnown,
      limits: this.#kept?.status,
      apart: this.#peers.apart.rows(performance.now()),
    };
  }

  /** An input that the own router accepted. */
  accepted(input: Input, decision: Decision | undefined): void {
    this.#own.follow(input, decision);
    if (this.#own.size > 0) this.#flushSoon();
  }

  breakerChanged(endpoint: EndpointId, change: BreakerChange): void {
    this.#own.breaker(endpoint, change);
    this.#flushSoon();
  }

  received(bytes: Buffer, isPast: boolean): void {
    this.#peers.received(bytes, isPast);
  }

  caughtUp(): void {
    this.#peers.caughtUp();
    this.#caughtUp.resolve();
  }

  connected(): void {
    if (this.#state === "shared") return;
    const waited = performance.now() - this.#lostAt;
    const wasAlone = this.#state === "alone";
    this.#state = "shared";
    this.#aloneWhy = "";
    if (wasAlone) {
      const detail = `${this.#options.link.name} is back after ${(waited / 1000).toFixed(1)} s`;
      this.#options.report({ kind: "sharing-recovered", detail });
    }
    // What others have of this replica is old, and what it has of them too: who gets this sends a snapshot.
    this.#encoder.startAfresh();
    this.#send("hello", []);
    this.#snapshotSoon();
    void this.#kept?.connected().finally(() => this.#tookOver.resolve());
  }

  lost(why: string): void {
    const isNew = this.#state !== "alone";
    if (this.#state === "shared") this.#lostAt = performance.now();
    this.#state = "alone";
    if (isNew) this.counts.losses++;
    this.lag.forget();
    // That a connection broke is often followed by the reason that it is refused from now on.
    const isRefusal = REFUSAL.test(why) && !REFUSAL.test(this.#aloneWhy);
    if (isNew || isRefusal)
      this.#options.report({ kind: "sharing-lost", detail: `${this.#options.link.name}: ${why}` });
    if (isNew || isRefusal || !REFUSAL.test(this.#aloneWhy)) this.#aloneWhy = why;
  }

  #helloed(): void {
    if (this.#timers.length === 0) return;
    this.#windowsDue = true;
    this.#encoder.startAfresh();
    this.#helloTimer ??= setTimeout(() => {
      this.#helloTimer = undefined;
      this.#snapshotSoon();
    }, HELLO_MILLIS).unref();
  }

  #snapshotSoon(): void {
    this.#snapshotDue = true;
    this.#flushSoon();
  }

  #flushSoon(): void {
    if (this.#flushTimer !== undefined) return;
    this.#waitsSince = performance.now();
    this.#flushTimer = setTimeout(() => {
      this.#flushTimer = undefined;
      this.#flush();
    }, this.#options.flushMillis);
  }

  #flush(): void {
    const news = this.#own.take();
    if (this.#state !== "shared" || !this.#options.link.takes) {
      this.counts.newsDropped += news.length;
      if (news.length === 0) return;
      this.#unreported.dropped(news);
      this.counts.requestsForgotten = this.#unreported.forgotten;
      // A number is missing now: whoever reads on knows that a snapshot is needed.
      this.#sequence++;
      this.#snapshotDue = true;
      return;
    }
    const used = this.#unreported.taken(news);
    for (let from = 0; from < used.length; from += NEWS_PER_REPORT_MAX) {
      this.#numbered("news", used.slice(from, from + NEWS_PER_REPORT_MAX));
    }
    for (let from = 0; from < news.length; from += NEWS_PER_REPORT_MAX) {
      this.#numbered("news", news.slice(from, from + NEWS_PER_REPORT_MAX));
    }
    if (!this.#snapshotDue) return;
    this.#snapshotDue = false;
    // Replicas of a version that knows no windows read no further than the head of a sign of life.
    if (this.#windowsDue) {
      this.#windowsDue = false;
      const { windows, leftOut } = windowsOf(this.#options.intake.router.admission.limits, nowMicros());
      this.counts.windowsLeftOut += leftOut;
      if (windows.length > 0) this.#send("alive", windows);
    }
    this.#numbered("snapshot", this.#own.snapshot());
  }

  #alive(): void {
    this.#watchReturn();
    if (this.#state !== "shared" || performance.now() - this.#sentAt < this.#options.aliveMillis) return;
    if (this.#options.link.takes) this.#send("alive", []);
  }

  /** Own reports come back over the link: where they do not, others' do not come either. */
  #watchReturn(): void {
    const since = this.lag.waitsSince;
    if (this.#state !== "shared" || since === undefined) return;
    if (performance.now() - since < RETURN_LEASES * this.#options.leaseMillis) return;
    this.lag.forget();
    this.#options.link.renew("what is sent does not come back");
  }

  #numbered(kind: "news" | "snapshot", news: readonly PeerNews[]): void {
    this.#sequence++;
    this.lag.sent(this.#sequence, this.#waitsSince);
    for (const one of news) if (one.kind === "charged" && kind === "news") this.counts.requestsSent++;
    this.#send(kind, news);
  }

  #send(kind: ReportKind, news: readonly PeerNews[]): void {
    const { replica, epoch, fingerprint, link } = this.#options;
    const bytes = this.#encoder.encode({ kind, fingerprint, replica, epoch, sequence: this.#sequence, news });
    this.counts.reportsSent++;
    this.counts.bytesSent += bytes.length;
    if (kind === "news") this.counts.newsBytesSent += bytes.length;
    this.#sentAt = performance.now();
    link.send(bytes);
  }
}

/** Reports whose way is being timed; older ones are forgotten. */
const TIMED_MAX = 1_024;
/** Times that the figures are taken over. */
const KEPT_MAX = 512;

/**
 * How long it takes from something that this replica does until its report has come back over the link: what others see
 * of it is so old.
 */
class LagWatch {
  readonly #sentAt = new Map<number, number>();
  readonly #millis = new Float64Array(KEPT_MAX);
  #count = 0;

  /** A report is sent; the first of its news waited since then. */
  sent(sequence: number, sinceMillis: number): void {
    this.#sentAt.set(sequence, sinceMillis);
    if (this.#sentAt.size <= TIMED_MAX) return;
    for (const first of this.#sentAt.keys()) {
      this.#sentAt.delete(first);
      return;
    }
  }

  received(sequence: number): void {
    const sentAt = this.#sentAt.get(sequence);
    if (sentAt === undefined) return;
    this.#sentAt.delete(sequence);
    this.#millis[this.#count++ % KEPT_MAX] = performance.now() - sentAt;
  }

  /** When the oldest report that has not come back was sent, as of `sent`; undefined where none is on its way. */
  get waitsSince(): number | undefined {
    return this.#sentAt.values().next().value;
  }

  /** What is on its way may never come back. */
  forget(): void {
    this.#sentAt.clear();
  }

  /** Of the latest reports that came back; undefined before the first. */
  get millis(): { readonly p50: number; readonly p99: number } | undefined {
    const kept = this.#millis.slice(0, Math.min(this.#count, KEPT_MAX)).sort();
    if (kept.length === 0) return undefined;
    const at = (share: number) => kept[Math.min(kept.length - 1, Math.floor(share * kept.length))]!;
    return { p50: at(0.5), p99: at(0.99) };
  }
}
