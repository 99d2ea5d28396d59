import type { Decision } from "#core/input/decision.ts";
import type { Input } from "#core/input/input.ts";

/**
 * Writes inputs and decisions down so that two hosts can be compared: everything but times, and requests by the order of
 * their arrival.
 */
export class Words {
  readonly all: string[] = [];
  readonly #numbers = new Map<string, number>();

  get arrived(): number {
    return this.#numbers.size;
  }

  /** The place of a request in the order of arrivals. */
  numberOf(requestId: string): number {
    return this.#numbers.get(requestId) ?? -1;
  }

  readonly take = (input: Input, decision: Decision | undefined): void => {
    if (input.kind === "request-arrived") this.#numbers.set(input.request.id, this.#numbers.size);
    const placed = decision === undefined ? "" : ` -> ${placeOf(decision)}`;
    this.all.push(`${input.kind} ${this.#about(input)}${placed}`);
  };

  #about(input: Input): string {
    switch (input.kind) {
      case "request-arrived":
        return `#${this.#numbers.get(input.request.id)}`;
      case "request-retried":
      case "request-hedged":
      case "request-released":
      case "request-escalated":
      case "answer-judged":
      case "first-token":
      case "answer-known":
      case "prefill-finished":
      case "transfer-failed":
        return `#${this.#numbers.get(input.requestId)}`;
      case "request-continued":
        return `#${this.#numbers.get(input.requestId)} ${input.fault} ${input.outputTokens}`;
      case "hedge-settled":
        return `#${this.#numbers.get(input.requestId)} ${input.winner} ${input.fault ?? ""}`;
      case "attempt-failed":
      case "prefill-failed":
        return `#${this.#numbers.get(input.requestId)} ${input.fault}`;
      case "request-finished":
        return `#${this.#numbers.get(input.requestId)} ${input.outcome} ${input.outputTokens ?? "-"} tokens`;
      case "request-moved":
        return `#${this.#numbers.get(input.requestId)} ${input.endpoint}`;
      case "progress":
        return `#${this.#numbers.get(input.requestId)} ${input.outputTokens}`;
      case "load-observed": {
        const { running, waiting, kvUtilization } = input.load;
        return `${input.endpoint} running ${running} waiting ${waiting} kv ${kvUtilization}`;
      }
      case "endpoint-joined":
      case "endpoint-changed":
        return input.endpoint.id;
      case "endpoint-left":
        return `${input.endpoint}${input.lost === true ? " lost" : ""}`;
      case "endpoint-suspended":
        return `${input.endpoint} ${input.reason}`;
      case "endpoint-checked":
        return `${input.endpoint} ${input.healthy}`;
      case "endpoint-slept":
        return `${input.endpoint} ${input.asleep} ${input.emptied === true}`;
      case "endpoint-resumed":
        return `${input.endpoint} ${input.servedUntilWell}`;
      case "endpoint-cordoned":
      case "endpoint-uncordoned":
      case "blocks-cleared":
      case "blocks-stored":
      case "blocks-removed":
      case "kv-events-alive":
      case "kv-events-missed":
      case "kv-events-lost":
        return input.endpoint;
      case "profile-changed":
        return input.name;
      case "policy-changed":
        return `version ${input.version} ${input.defaultProfile}`;
      case "peer-reported":
        return `${input.peer} ${input.news.length}`;
      case "peer-left":
        return input.peer;
      case "rollout-planned":
        return input.plan.name;
      case "rollout-restored":
        return input.state.plan.name;
      case "rollout-step":
        return `${input.rollout} ${input.step} ${input.arm}`;
      case "rollout-removed":
        return input.rollout;
      case "rollout-look":
        return "";
      case "rollout-predicted":
        return `${input.rollout} ${input.requests.length}`;
      case "rollout-shared":
        return `${input.rollout} ${input.entries.length}`;
      case "sessions-restored":
        return String(input.keys.length);
      case "block-size-changed":
        return String(input.blockTokens);
    }
  }
}

function placeOf(decision: Decision): string {
  const { kind, sequence, attempt, reason } = decision;
  const stages = decision.kind === "routed" && decision.prefill ? `${decision.prefill.endpoint} then ` : "";
  const where = decision.kind === "routed" ? `${stages}${decision.endpoint}` : "nobody";
  return `${kind} ${where} by ${reason}, decision ${sequence}, attempt ${attempt}`;
}
