import type { Endpoint } from "#core/endpoint/endpoint.ts";
import type { Decision } from "#core/input/decision.ts";
import type { EngineConfig } from "#engine/config.ts";
import type { WhyCard } from "#page/status/why-card.ts";
import type { Candidate, Setting } from "#shadow/candidate/candidate.ts";
import { inForceOf } from "#shadow/candidate/in-force.ts";
import type { RecordedRun } from "#shadow/recorded/recorded-run.ts";
import type { TraceItem } from "#trace/codec/record.ts";
import type { RememberedBounds } from "./engine-caches.ts";
import { slowAnswers } from "./slow-answers.ts";
import { TokenLedger } from "./token-ledger.ts";
import { knewTooLittle, tokenSummary } from "./token-summary.ts";
import type { WhyAnswer } from "./why-answer.ts";
import { whyCard } from "./why-card.ts";

/** Of all together 16 million tokens at 16 a block. */
const REMEMBERED: RememberedBounds = { blocks: 1 << 20, perCapacity: 4 };
/** Requests in flight that are remembered. */
const OPEN_MAX = 10_000;
/** Requests that are simulated for one explanation, over all simulations: a second or two of CPU. */
const WORK_MAX = 24_000;
const WORLDS_MIN = 8;
const WORLDS_MAX = 64;

/** Explains the latest requests of a running gateway: as `gnomon why` does those of a trace. */
export class WindowWhy {
  readonly #ledger: TokenLedger;
  readonly #against: Candidate;
  #blockTokens = 16;

  /** `engineOf`: the engine model in use. */
  constructor(against: Candidate, requestsMax: number, engineOf: () => EngineConfig) {
    const capacityOf = ({ kvCapacityTokens }: Endpoint): number => {
      const { dataParallel, kvBlocks, blockTokens } = engineOf();
      const own = dataParallel * (kvBlocks - 1) * blockTokens;
      return Math.max(1, Math.floor((kvCapacityTokens ?? own) / this.#blockTokens));
    };
    this.#against = against;
    this.#ledger = new TokenLedger(capacityOf, { latest: requestsMax, openMax: OPEN_MAX, remembered: REMEMBERED });
  }

  /** `again`: the decision with all its candidates, where a router decided the same anew. */
  take(item: TraceItem, again: Decision | undefined): void {
    if (item.kind === "run") this.#blockTokens = item.header.router.blockTokens;
    if (item.kind !== "record") return this.#ledger.takeItem(item);
    const { input, decision } = item;
    if (input.kind === "block-size-changed") this.#blockTokens = input.blockTokens;
    this.#ledger.take(input, again ?? decision);
  }

  /** A step before every simulation. */
  *explain(run: RecordedRun, setting: Setting, at: number): Generator<void, WhyCard> {
    const inForce = inForceOf(run.header, run.fleetEvents);
    const tokens = tokenSummary(this.#ledger.rows);
    const worldsMax = Math.max(WORLDS_MIN, Math.min(WORLDS_MAX, Math.floor(WORK_MAX / run.workload.length)));
    const slow = yield* slowAnswers({
      setting,
      inForce,
      otherwise: this.#against,
      observed: run.observed,
      isIndexWrong: knewTooLittle(tokens),
      figure: { time: "ttft", of: "mean" },
      worldsMax,
      replicas: 0,
      seed: setting.seed,
    });
    const answer: WhyAnswer = {
      inForce: inForce.name,
      against: this.#against.name,
      tokens,
      slow,
      ahead: slow.ahead.longest.map(({ index }) => run.requestIds?.[index] ?? ""),
      left: run.left,
      notes: [],
    };
    return whyCard(answer, at);
  }
}
