import type { FollowerRow } from "../kv-events/follower.ts";
import type { HitAccuracy, HitCounts } from "./prediction-accuracy.ts";
import type { MetricFamily, MetricRow } from "./metric-family.ts";

export interface KvEventSources {
  /** Left out where no KV events are followed. */
  readonly kvEvents?: () => readonly FollowerRow[];
  /** Left out where nobody compares. */
  readonly hitAccuracy?: Pick<HitAccuracy, "rows">;
}

type Row = (value: number, labels?: Readonly<Record<string, string>>) => MetricRow;
type Family = (type: MetricFamily["type"], name: string, help: string, rows: () => MetricRow[]) => void;

const HITS: readonly (readonly [name: string, help: string, of: keyof HitCounts])[] = [
  ["hit_requests_total", "Requests whose cached tokens the engine reported.", "requests"],
  ["hit_requests_exact_total", "Those of which just as many were expected.", "exact"],
  ["hit_tokens_expected_total", "Cached tokens that were expected of them.", "expectedTokens"],
  ["hit_tokens_reported_total", "Cached tokens that their engines reported.", "reportedTokens"],
  ["hit_tokens_over_total", "Cached tokens expected that were not there.", "overTokens"],
  ["hit_tokens_under_total", "Cached tokens that were there and not expected.", "underTokens"],
];

const COUNTERS: readonly (readonly [event: string, of: (row: FollowerRow) => number])[] = [
  ["message", ({ link }) => link.messages],
  ["seen-before", ({ link }) => link.seen],
  ["gap", ({ link }) => link.gaps],
  ["gap-closed", ({ link }) => link.closed],
  ["missed", ({ link }) => link.missed],
  ["restart", ({ link }) => link.restarts],
  ["disconnect", ({ link }) => link.disconnects],
  ["undecodable", ({ link }) => link.undecodable],
  ["event", ({ feed }) => feed.events],
  ["event-ignored", ({ feed }) => feed.ignored],
  ["stored-block", ({ feed }) => feed.stored],
  ["removed-block", ({ feed }) => feed.removed],
  ["stored-host-block", ({ feed }) => feed.storedInHost],
  ["removed-host-block", ({ feed }) => feed.removedFromHost],
  ["untranslated-block", ({ feed }) => feed.untranslated],
  ["unknown-removed-block", ({ feed }) => feed.unknownRemoved],
  ["cleared", ({ feed }) => feed.cleared],
];

/** What is followed of engines' caches, and how right the prefix index is. */
export function registerKvEvents({ kvEvents, hitAccuracy }: KvEventSources, family: Family, row: Row): void {
  for (const [name, help, of] of HITS) {
    family("counter", `endpoint_${name}`, `${help} By where the expectation came from.`, () =>
      (hitAccuracy?.rows() ?? []).flatMap(({ endpoint, source, counts }) =>
        counts.requests === 0 ? [] : [row(counts[of], { endpoint, source })],
      ),
    );
  }
  family("counter", "kv_events_total", "KV events of engines, by outcome.", () =>
    (kvEvents?.() ?? []).flatMap((follower) =>
      COUNTERS.map(([event, of]) => row(of(follower), { endpoint: follower.endpoint, event })),
    ),
  );
  family("counter", "kv_events_bytes_total", "Bytes of KV events.", () =>
    (kvEvents?.() ?? []).map(({ endpoint, link }) => row(link.bytes, { endpoint })),
  );
  family("gauge", "kv_events_known_blocks", "Engine blocks whose block hash the gateway knows.", () =>
    (kvEvents?.() ?? []).map(({ endpoint, knownBlocks }) => row(knownBlocks, { endpoint })),
  );
}
