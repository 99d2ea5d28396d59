import type { EndpointRow } from "#core/fleet/endpoint-row.ts";
import type { Router } from "#core/router.ts";
import { MICROS_PER_MILLI } from "#core/base/units.ts";
import type {
  DecisionLine,
  EndpointCard,
  KnownEndpoint,
  Overview,
  PolicyCard,
  PolicyChangeLine,
  ShadowCandidateCard,
  ShadowCard,
  ShadowPrediction,
} from "#page/status/overview.ts";
import { WALL_START_MICROS, nowMicros } from "../base/clock.ts";
import type { EndpointDirectory, EndpointEntry } from "../endpoints/endpoint-directory.ts";
import type { FleetKeeper, ScrapeRow } from "../keeper/fleet-keeper.ts";
import type { PolicyAdmin } from "../admin/policy-admin.ts";
import type { AutopilotAdmin, AutopilotView } from "../admin/autopilot-admin.ts";
import type { RolloutAdmin } from "../admin/rollout-admin.ts";
import type { KeptDecision, ShownDecisions } from "./shown-decisions.ts";
import type { Readiness } from "./readiness.ts";
import type { ProcessWatch } from "./process-watch.ts";
import type { RecentTraffic } from "./recent-traffic.ts";
import { rolloutCard } from "./rollout-card.ts";
import type { ShadowStatus, ShadowCandidate } from "../metrics/shadow-status.ts";
import { whyText } from "./status-view.ts";
import { cameText, isOver } from "./what-came.ts";
import type { AutopilotCard } from "#page/status/autopilot-overview.ts";

export interface OverviewSources {
  readonly router: Router;
  readonly directory: EndpointDirectory;
  readonly keeper: Pick<FleetKeeper, "rows">;
  readonly readiness: Readiness;
  readonly policy: PolicyAdmin;
  readonly traffic: RecentTraffic;
  readonly process: ProcessWatch;
  readonly shownDecisions: ShownDecisions;
  readonly shadow?: () => ShadowStatus;
  /** Left out where none can be. */
  readonly rollouts?: Pick<RolloutAdmin, "view">;
  /** Undefined where no better policy is searched. */
  readonly autopilot?: Pick<AutopilotAdmin, "view"> | undefined;
  readonly version: string;
}

/** What the page knows already. */
export interface OverviewQuery {
  /** Decisions up to this sequence, and what came of them; -1 for none. */
  readonly decisions: number;
  /** Slots of traffic up to this one; -1 for none. */
  readonly slot: number;
}

const DECISIONS_MAX = 30;
const MODELS_NAMED = 4;
const CHANGES_SHOWN = 10;
const ROLLOUTS_SHOWN = 4;

/** Everything that the status page shows, in one answer. No key, no prompt. */
export function overviewOf(sources: OverviewSources, query: OverviewQuery): Overview {
  const { router, directory, keeper, readiness, policy, traffic, shownDecisions, shadow, rollouts, version } = sources;
  const at = nowMicros();
  const rows = new Map(router.endpointRows(at).map((row) => [row.id, row]));
  const lately = traffic.endpoints();
  const scrapes = new Map(keeper.rows().map((row) => [row.url, row]));
  return {
    at: wallMillis(at),
    gateway: {
      version,
      startedAt: wallMillis(0),
      waitsFor: readiness.waitsFor(),
      requestsInFlight: router.inFlight,
      requestsQueued: router.admission.waiting,
      process: sources.process.figures(),
    },
    endpoints: directory.all().map((entry) => ({
      ...endpointCard(entry, rows.get(entry.id), scrapes.get(entry.url)),
      lastMinute: lately.get(entry.id) ?? null,
    })),
    traffic: traffic.view(query.slot),
    decisions: shownDecisions.after(query.decisions, DECISIONS_MAX).map(decisionLine),
    policy: policyCard(policy),
    shadow: shadow === undefined ? null : shadowCard(shadow()),
    autopilot: sources.autopilot === undefined ? null : autopilotCard(sources.autopilot.view()),
    rollouts: (rollouts?.view().rollouts ?? []).slice(0, ROLLOUTS_SHOWN).map(rolloutCard),
  };
}

function endpointCard(
  entry: EndpointEntry,
  row: EndpointRow | undefined,
  scrape: ScrapeRow | undefined,
): Omit<EndpointCard, "lastMinute"> {
  const { id, state, detail, models } = entry;
  return {
    id,
    state,
    detail,
    models: models.slice(0, MODELS_NAMED).map((model) => model.id),
    modelsMore: Math.max(0, models.length - MODELS_NAMED),
    scrapeError: scrape?.lastError ?? "",
    known: row === undefined ? null : knownEndpoint(row),
  };
}

function knownEndpoint(row: EndpointRow): KnownEndpoint {
  const { endpoint, load } = row;
  return {
    cordoned: row.cordoned,
    breaker: row.breaker,
    standing: row.standing,
    ejected: row.asleep ? "asleep" : row.ejected,
    share: thousandths(row.share),
    freshness: row.freshness,
    ageMillis: row.loadAgeMicros < 0 ? null : Math.round(row.loadAgeMicros / MICROS_PER_MILLI),
    running: load?.running ?? null,
    waiting: load?.waiting ?? null,
    inFlight: row.requestsInFlight,
    load: row.effectiveLoad,
    prefillTokensQueued: Math.round(row.prefillTokensQueued),
    decodeTokens: Math.round(row.decodeTokens),
    kvUtilization: thousandths(row.kvUtilization),
    kvCapacityTokens: endpoint.kvCapacityTokens ?? null,
    hitRatio: load?.prefixHitRatio === undefined ? null : thousandths(load.prefixHitRatio),
    indexBlocks: row.indexBlocks,
    ttftMillis: millis(row.ttftMicros),
    tpotMillis: millis(row.tpotMicros),
  };
}

function decisionLine(kept: KeptDecision): DecisionLine {
  const { decision, model, promptTokens, promptTokensExact, decisionMicros } = kept;
  const { at, sequence, requestId, attempt, kind, profile, policyVersion, rollout } = decision;
  const routed = decision.kind === "routed" ? decision : undefined;
  return {
    at: wallMillis(at),
    sequence,
    requestId,
    attempt,
    model: model ?? null,
    kind,
    endpoint: routed?.endpoint ?? null,
    arm: rollout?.arm ?? "",
    why: whyText(decision, promptTokens, promptTokensExact),
    came: cameText(kept),
    isOver: isOver(kept),
    profile,
    policyVersion,
    promptTokens: promptTokens ?? null,
    hitTokens: routed?.hitTokens ?? null,
    decisionMicros: Math.round(decisionMicros),
    usedLedger: routed?.usedLedger ?? false,
  };
}

function policyCard(admin: PolicyAdmin): PolicyCard {
  const { versions, refused } = admin.history();
  const inForce = admin.view();
  const made = versions.map(({ at, version, source, by, note, defaultProfile }): PolicyChangeLine => {
    const detail = note === "" ? defaultProfile : `${defaultProfile} (${note})`;
    return { at: Date.parse(at), version, source, by, detail };
  });
  const turnedDown = refused.map(({ at, source, by, problems }): PolicyChangeLine => {
    return { at: Date.parse(at), source, by, detail: problems.join("; ") };
  });
  return {
    version: inForce?.version ?? 0,
    defaultProfile: inForce?.defaultProfile ?? "",
    profiles: inForce?.profiles ?? [],
    changes: [...made, ...turnedDown].sort((a, b) => b.at - a.at).slice(0, CHANGES_SHOWN),
  };
}

function wallMillis(at: number): number {
  return Math.round((WALL_START_MICROS + at) / MICROS_PER_MILLI);
}

function millis(micros: number | undefined): number | null {
  return micros === undefined ? null : Math.round(micros) / MICROS_PER_MILLI;
}

function thousandths(share: number): number {
  return Math.round(share * 1_000) / 1_000;
}

const PROPOSALS_SHOWN = 4;

/** What the page shows of the autopilot. */
function autopilotCard({ start, latest, searches, proposals }: AutopilotView): AutopilotCard {
  return {
    startsAlone: start === "alone",
    latest,
    searches: Object.values(searches).reduce((sum, count) => sum + count, 0),
    proposals: proposals.slice(0, PROPOSALS_SHOWN).map((one) => ({
      name: one.name,
      at: Date.parse(one.at),
      state: one.state,
      by: one.by,
      detail: one.detail,
      inForce: one.inForce,
      objective: one.objective,
      gain: one.gain,
      gainLow: one.gainLow,
      gainHigh: one.gainHigh,
    })),
  };
}

/** What of the shadow's state the status page shows. */
function shadowCard({ state, detail, parity, calibration, evaluation, why }: ShadowStatus): ShadowCard {
  return {
    ...(why !== undefined && { why }),
    state,
    detail,
    decisions: parity.decisions,
    differences: parity.differences,
    engine: calibration.source,
    evaluation:
      evaluation === undefined
        ? null
        : {
            inForce: evaluation.inForce,
            requests: evaluation.requests,
            replicas: evaluation.replicas,
            withoutIntervals: evaluation.withoutIntervals,
            measuredSeconds: evaluation.measuredSeconds,
            candidates: evaluation.candidates.map(candidateCard),
          },
  };
}

function candidateCard({ name, hitRatio, ...candidate }: ShadowCandidate): ShadowCandidateCard {
  const predicted = Object.entries(candidate.predictedSeconds).map(([metric, point]): [string, ShadowPrediction] => {
    const interval = candidate.intervalSeconds[metric]?.mean;
    const difference = candidate.differenceSeconds[metric];
    return [
      metric,
      {
        mean: interval?.expected ?? point,
        ...(interval && { low: interval.low, high: interval.high }),
        ...(difference && { difference: difference.mean, exceedsNoise: difference.exceedsNoise }),
      },
    ];
  });
  return { name, hitRatio, predicted: Object.fromEntries(predicted) };
}
