import type { WhyCard } from "#page/status/why-card.ts";
import type {
  DecisionDetail,
  DecisionLine,
  EndpointCard,
  KnownEndpoint,
  Overview,
  RolloutCard,
  RolloutPoint,
  RecentTrafficFigures,
  TrafficSlot,
} from "#page/status/overview.ts";
import { randomFor } from "#core/base/random.ts";

const AT = Date.parse("2026-03-04T14:03:20Z");
const SLOT_MILLIS = 5_000;
const SLOTS_MAX = 180;
const random = randomFor(7, 1);
const draw = (low: number, high: number) => low + ((high - low) * random.below(1_000_000)) / 1_000_000;

const WELL: KnownEndpoint = {
  cordoned: false,
  breaker: "closed",
  standing: "well",
  ejected: "",
  share: 1,
  freshness: "fresh",
  ageMillis: 120,
  running: 12,
  waiting: 0,
  inFlight: 11,
  load: 12,
  prefillTokensQueued: 2_048,
  decodeTokens: 24_300,
  kvUtilization: 0.42,
  kvCapacityTokens: 500_000,
  hitRatio: 0.61,
  indexBlocks: 28_400,
  ttftMillis: 143,
  tpotMillis: 21.4,
};

const MODEL = "meta-llama/Llama-3.3-70B-Instruct-quantized.w8a8";

export function endpointCase(
  id: string,
  known: Partial<KnownEndpoint> = {},
  more: Partial<EndpointCard> = {},
): EndpointCard {
  const lastMinute = { requests: 214, failedAttempts: 0, ttftMillis: 143, expectedHitRatio: 0.62, hitRatio: 0.61 };
  const card = { id, state: "ready" as const, detail: "", models: [MODEL], modelsMore: 0, scrapeError: "", lastMinute };
  return { ...card, known: { ...WELL, ...known }, ...more };
}

/** Names as a large cluster has them, and of every trouble one. */
export function fleetCase(size: number): EndpointCard[] {
  const name = (i: number) =>
    `http://vllm-llama-3-3-70b-instruct-decode-7f9c8d6b5-${(i * 7_919).toString(36).padStart(5, "x")}.inference-production.svc.cluster.local:8000`;
  const well = Array.from({ length: Math.max(0, size - 6) }, (_, i) =>
    endpointCase(name(i), {
      running: Math.round(draw(2, 40)),
      waiting: random.below(5) === 0 ? random.below(9) : 0,
      inFlight: Math.round(draw(2, 40)),
      kvUtilization: draw(0.1, 0.93),
      hitRatio: draw(0.3, 0.8),
    }),
  );
  const troubled = [
    endpointCase("http://hung.example:8000", { standing: "hung", running: 40, waiting: 12 }),
    endpointCase("http://failing.example:8000", { breaker: "open" }),
    endpointCase(
      "http://stale.example:8000",
      { freshness: "stale", ageMillis: 9_000 },
      { scrapeError: "timeout after 1000 ms" },
    ),
    endpointCase("http://full.example:8000", { kvUtilization: 0.99, waiting: 31, running: 128 }),
    endpointCase("http://cordoned.example:8000", { cordoned: true, running: 0, waiting: 0, inFlight: 0 }),
    endpointCase(
      "http://lost.example:8000",
      {},
      { state: "lost", detail: "connect ECONNREFUSED 10.12.0.7:8000", known: null },
    ),
  ];
  return [...well, ...troubled].slice(-size).sort((a, b) => (a.id < b.id ? -1 : 1));
}

/** A switchback's: each arm has every other window. */
function windowsCase(mean: number, after: number) {
  return Array.from({ length: 12 }, (_, i) => {
    const now = mean * (1 + 0.2 * Math.sin(i));
    return { at: AT - 7_200_000 + after + 600_000 * i, mean: now, low: 0.8 * now, high: 1.9 * now };
  });
}

function figures(load: number): RecentTrafficFigures {
  const times = (p50: number) => ({ mean: p50 * 1.2, p50, p99: p50 * draw(2.4, 4) });
  const requests = Math.round(load * 5);
  return {
    requests,
    failed: random.below(12) === 0 ? 1 : 0,
    refused: load > 230 ? random.below(40) : 0,
    aborted: 0,
    outputTokens: requests * 210,
    hitRatio: draw(0.55, 0.66),
    ttft: times(120 + load / 4),
    tpot: times(18 + load / 40),
    e2e: times(4_000 + load * 4),
  };
}

function slotsCase(): TrafficSlot[] {
  const newest = Math.floor(AT / SLOT_MILLIS);
  return Array.from({ length: SLOTS_MAX }, (_, i) => ({
    slot: newest - SLOTS_MAX + 1 + i,
    ...figures(190 + 50 * Math.sin(i / 20) + draw(-12, 12)),
  }));
}

export function decisionCase(sequence: number, more: Partial<DecisionLine> = {}): DecisionLine {
  return {
    at: AT - (1_000 - sequence) * 250,
    sequence,
    requestId: `chatcmpl-${sequence}`,
    attempt: 1,
    kind: "routed",
    arm: "",
    model: MODEL,
    endpoint: "http://vllm-llama-3-3-70b-instruct-decode-7f9c8d6b5-x63z3.inference-production.svc.cluster.local:8000",
    why: "added-latency; 672 of 694 tokens cached there, next best 0; the next best adds 7.1 times the waiting; first token expected in 45 ms, at the next best in 320 ms",
    came: "first token after 52 ms (expected 45 ms), then 180 tokens at 9.8 ms (expected 9.1 ms) each, whole after 1.81 s (expected 1.67 s)",
    isOver: true,
    profile: "gnomon",
    policyVersion: 7,
    promptTokens: 694,
    hitTokens: 672,
    decisionMicros: 31,
    usedLedger: false,
    ...more,
  };
}

export function detailCase(count: number): DecisionDetail {
  const { endpoint } = decisionCase(1);
  const rest = fleetCase(count).map(({ id }) => id);
  return {
    endpoint,
    scorers: [
      { name: "prefix-affinity", weight: 0.429 },
      { name: "added-latency", weight: 0.571 },
    ],
    candidates: [endpoint!, ...rest].map((id, i) => ({
      endpoint: id,
      removedBy: i % 9 === 8 ? "breaker" : "",
      scores: {
        "prefix-affinity": i === 0 ? 1 : i % 9 === 8 ? null : 0.2 / i,
        "added-latency": i % 5 === 3 ? -1 : 0.5 / (i + 1),
      },
      total: i % 9 === 8 ? null : 1 / (i + 1),
      hitTokens: i === 0 ? 672 : 0,
      effectiveLoad: 12 + i,
      kvUtilization: 0.4,
      prefillTokensQueued: 1_024 * i,
      freshness: "fresh",
      loadAgeMillis: 120,
    })),
  };
}

function pointsCase(mean: number, spread: number): RolloutPoint[] {
  return Array.from({ length: 24 }, (_, i) => {
    const reach = spread / Math.sqrt(i + 1);
    const middle = mean + draw(-0.2, 0.2) * reach;
    return { at: AT - (24 - i) * 60_000, mean: middle, low: middle - reach, high: middle + reach };
  });
}

export function rolloutCase(more: Partial<RolloutCard> = {}): RolloutCard {
  const times = (p50: number) => ({ mean: p50 * 1.2, p50, p99: p50 * 3.1 });
  const arm = {
    share: "",
    refused: 0,
    hitRatio: 0.61,
    goodput: 0.93,
    imbalance: 1.21,
    tpot: times(21),
    e2e: times(4_300),
  };
  return {
    name: "gnomon-against-llm-d",
    model: MODEL,
    phase: "running",
    design:
      "Switchback: the whole fleet alternates between the arms in windows of 60 s, the first 10 s of each left out.",
    at: AT - 24 * 60_000,
    reason: "started",
    health: [],
    scope: "",
    verdict: {
      text: "after 3 of 9 blocks: not known yet whether llm-d differs: could find 14 % now; about 12 minutes more",
      advice: "wait",
      done: 3,
      planned: 9,
      unit: "blocks",
    },
    cooldownEndsAt: null,
    window: { number: 24, endsAt: AT + 34_000, arm: "gnomon", isWashout: false },
    arms: [
      { ...arm, name: "llm-d", profile: "llm-d", requests: 141_200, failed: 3, ttft: times(151) },
      { ...arm, name: "gnomon", profile: "gnomon", requests: 139_900, failed: 0, ttft: times(118), hitRatio: 0.66 },
    ],
    windows: (["ttft", "tpot", "e2e"] as const).map((metric, i) => ({
      metric,
      arms: [
        { name: "llm-d", points: windowsCase(151 * 8 ** i, 0) },
        { name: "gnomon", points: windowsCase(118 * 8 ** i, 300_000) },
      ],
    })),
    intervals: [
      {
        arm: "gnomon",
        metric: "ttft",
        predicted: { low: -50, high: -18, verdict: "agrees" },
        points: pointsCase(-38, 160),
      },
      {
        arm: "gnomon",
        metric: "tpot",
        predicted: { low: -1.2, high: 0.4, verdict: "open" },
        points: pointsCase(-0.4, 5),
      },
      {
        arm: "gnomon",
        metric: "e2e",
        predicted: { low: -400, high: -60, verdict: "open" },
        points: pointsCase(-210, 1_400),
      },
    ],
    guardrails: [
      { figure: "error-rate", arm: "gnomon", limit: "at most 1 %", used: 0, value: "0 %" },
      { figure: "ttft.p99", arm: "gnomon", limit: "at most 2 times the control's", used: 0.41, value: "366 ms" },
      { figure: "e2e.mean", arm: "gnomon", limit: "at most 1.5 times the control's", used: null, value: "" },
    ],
    steps: [
      { at: AT - 25 * 60_000, step: "planned", by: "ana@example.org", reason: "" },
      { at: AT - 24 * 60_000, step: "start", by: "ana@example.org", reason: "plan recommends 3 h" },
    ],
    ...more,
  };
}

export function overviewCase(more: Partial<Overview> = {}): Overview {
  const predicted = (mean: number) => ({
    mean,
    low: mean * 0.86,
    high: mean * 1.19,
    difference: -0.1 * mean,
    exceedsNoise: true,
  });
  const slots = slotsCase();
  return {
    at: AT,
    gateway: {
      version: "0.1.0",
      startedAt: AT - 86_400_000,
      waitsFor: [],
      requestsInFlight: 1_204,
      requestsQueued: 17,
      process: { cpu: 0.83, loopHeldMillis: 14.2, memoryBytes: 312e6 },
    },
    endpoints: fleetCase(104),
    traffic: {
      slotMillis: SLOT_MILLIS,
      slotsMax: SLOTS_MAX,
      slots,
      lastMinute: { ...figures(214), seconds: 58 },
      models: [
        { model: "meta-llama/Llama-3.1-8B-Instruct", ...figures(180) },
        { model: "", ...figures(34), ttft: null, tpot: null, e2e: null, hitRatio: null },
      ],
    },
    decisions: Array.from({ length: 12 }, (_, i) =>
      decisionCase(
        1_000 - i,
        i === 2
          ? { kind: "rejected", endpoint: null, why: "saturated", hitTokens: null }
          : i === 4
            ? { attempt: 2, model: null, promptTokens: null, why: "only", arm: "gnomon" }
            : {},
      ),
    ),
    policy: {
      version: 7,
      defaultProfile: "gnomon",
      profiles: ["gnomon", "llm-d"],
      changes: [
        {
          at: AT - 60_000,
          source: "file",
          by: "config.yaml",
          detail: "limits.attemptsMax: expected an integer in [1, 16], got 99",
        },
        { at: AT - 3_600_000, version: 7, source: "admin", by: "ana@example.org", detail: "gnomon (rollback to 5)" },
        { at: AT - 86_400_000, version: 6, source: "start", by: "", detail: "llm-d" },
      ],
    },
    shadow: {
      state: "running",
      detail: "",
      decisions: 1_204_331,
      differences: 0,
      engine: "fitted",
      why: whyCase(),
      evaluation: {
        inForce: "gnomon",
        requests: 2_000,
        replicas: 20,
        withoutIntervals: "",
        measuredSeconds: { ttft: 0.171, tpot: 0.0212, e2e: 4.41 },
        candidates: [
          {
            name: "gnomon",
            hitRatio: 0.64,
            predicted: {
              ttft: { mean: 0.166, low: 0.14, high: 0.2 },
              tpot: { mean: 0.0208, low: 0.019, high: 0.024 },
              e2e: { mean: 4.3, low: 3.9, high: 4.9 },
            },
          },
          {
            name: "llm-d",
            hitRatio: 0.58,
            predicted: { ttft: predicted(0.21), tpot: predicted(0.022), e2e: predicted(4.7) },
          },
          {
            name: "round-robin",
            hitRatio: 0.31,
            predicted: { ttft: predicted(0.48), tpot: predicted(0.025), e2e: predicted(5.6) },
          },
          {
            name: "lmetric",
            hitRatio: 0.6,
            predicted: {
              ttft: { ...predicted(0.19), exceedsNoise: false },
              tpot: predicted(0.021),
              e2e: predicted(4.5),
            },
          },
        ],
      },
    },
    autopilot: {
      startsAlone: false,
      latest: "it gains 6.1 % on what was held out (3.2 % to 8.9 %)",
      searches: 14,
      proposals: [
        {
          name: "tuned-5f1c9a02-v7",
          at: AT - 1_800_000,
          state: "waiting",
          by: "",
          detail: "",
          inForce: "llm-d",
          objective: "e2e-mean",
          gain: 0.061,
          gainLow: 0.032,
          gainHigh: 0.089,
        },
      ],
    },
    rollouts: [rolloutCase()],
    ...more,
  };
}

function whyCase(): WhyCard {
  return {
    at: AT - 40_000,
    requests: 1_600,
    inForce: "gnomon",
    against: "gnomon",
    sentences: [
      "Tenant research has 61.0 % of all tokens computed: that is 88.0 ms (90 %: 71.0 to 104), 51.5 % of the mean TTFT of 1600 requests, 171 ms.",
      "Of 1204000 cached tokens that were possible 1131760 were hit (94.0 %); most others, 40000 (3.3 %), were lost to evicted: engines let them go.",
    ],
    parts: [
      { part: "tenant", millis: 88, low: 71, high: 104, meaning: "tenant research has 61.0 % of all tokens computed" },
      { part: "gateway", millis: 0.1, meaning: "in the gateway: the prompt became tokens, or waited for its turn" },
      { part: "load", millis: 31, meaning: "waiting for each other, without all of the above" },
      { part: "own", millis: 49, meaning: "prompt and answer alone on an engine" },
      { part: "unexplained", millis: 3, meaning: "observed beyond what is simulated" },
    ],
    tokens: [
      { what: "new", tokens: 690_000, meaning: "nobody had sent them before" },
      { what: "hit", tokens: 1_131_760, meaning: "as engines reported" },
      { what: "evicted", tokens: 40_000, meaning: "engines let them go" },
    ],
  };
}
