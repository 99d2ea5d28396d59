import type { EndpointId } from "#core/endpoint/endpoint.ts";
import {
  type Input,
  isAsking,
  type RequestArrived,
  type RequestMoved,
  type RequestReleased,
} from "#core/input/input.ts";
import type { RecordedDecision, TraceHeader, TraceItem } from "#trace/codec/record.ts";
import { LastRun } from "../recorded/last-run.ts";

/** An input, and where the request that it brings went. */
export interface DecidedInput {
  readonly input: Input;
  /** Undefined where it brings none. */
  readonly endpoint: EndpointId | undefined;
  /** A decision to be explained: the first one about its request, by somebody who is known. */
  readonly isJudged: boolean;
}

/** One life of a router, as its decisions were recorded, whoever made them. */
export interface DecidedRun {
  readonly header: TraceHeader;
  readonly inputs: readonly DecidedInput[];
  /** Decisions to be explained. */
  readonly decisions: number;
  /** What was not used, by reason. */
  readonly left: Readonly<Record<string, number>>;
}

/** What a policy is by, and not what it decides from: nothing of it reaches a candidate. */
const OF_POLICIES: ReadonlySet<Input["kind"]> = new Set<Input["kind"]>([
  "policy-changed",
  "profile-changed",
  "rollout-planned",
  "rollout-step",
  "rollout-removed",
  "rollout-restored",
  "rollout-look",
  "rollout-predicted",
  "rollout-shared",
]);

/** Reads a trace's last run with a request, up to so many decisions. Throws an Error where there is none. */
export async function readDecidedRun(items: AsyncIterable<TraceItem>, decisionsMax: number): Promise<DecidedRun> {
  const runs = new LastRun<{ readonly book: RunReading; readonly earlier: number }>();
  for await (const item of items) {
    if (item.kind === "run") {
      const before = runs.used;
      const earlier = before === undefined ? 0 : before.earlier + before.book.decisions;
      runs.begin({ book: new RunReading(item.header, decisionsMax), earlier });
      continue;
    }
    runs.take(item);
    const book = runs.now?.book;
    if (item.kind === "gap") book?.leave("dropped by the recorder", item.dropped);
    else book?.take(item.input, item.decision);
  }
  const { chosen } = runs;
  if (chosen === undefined) throw new Error("expected a trace with a header, got none");
  const { book, earlier } = chosen;
  if (earlier > 0) book.leave("of an earlier run of the recorder", earlier);
  return book.done();
}

class RunReading {
  readonly #header: TraceHeader;
  readonly #decisionsMax: number;
  readonly #inputs: DecidedInput[] = [];
  readonly #left = new Map<string, number>();
  /** Requests that wait to be let in. */
  readonly #waiting = new Map<string, RequestArrived>();
  /** Places of requests in flight. */
  readonly #places = new Map<string, number>();
  decisions = 0;

  constructor(header: TraceHeader, decisionsMax: number) {
    this.#header = header;
    this.#decisionsMax = decisionsMax;
  }

  leave(reason: string, count = 1): void {
    this.#left.set(reason, (this.#left.get(reason) ?? 0) + count);
  }

  take(input: Input, decision: RecordedDecision | undefined): void {
    const went = decision?.kind === "routed" ? decision.endpoint : undefined;
    const waits = decision?.kind === "queued";
    if (this.decisions >= this.#decisionsMax) {
      if (input.kind === "request-arrived") this.leave("beyond --limit");
      return;
    }
    if (OF_POLICIES.has(input.kind)) return;
    if (input.kind === "request-arrived") return this.#arrived(input, went, waits);
    if (input.kind === "request-released") return this.#released(input, went, waits);
    if (input.kind === "request-moved" && this.#header.observed !== undefined) return this.#moved(input);
    if (isAsking(input)) {
      if (went !== undefined) this.#push(input, went, false);
      return;
    }
    if (input.kind === "request-finished") this.#places.delete(input.requestId);
    this.#push(input, undefined, false);
  }

  done(): DecidedRun {
    const { inputs, together } =
      this.#header.observed === undefined ? { inputs: this.#inputs, together: 0 } : withoutOrder(this.#inputs);
    if (together > 0)
      this.leave("came together with others, so that nobody knows which was decided on first", together);
    const left = Object.fromEntries(this.#left);
    return { header: this.#header, inputs, decisions: this.decisions - together, left };
  }

  #arrived(input: RequestArrived, went: EndpointId | undefined, waits: boolean): void {
    if (waits) this.#waiting.set(input.request.id, input);
    else if (went === undefined) this.leave("was sent nowhere");
    else this.#placed(input, went);
  }

  /** It is decided on as if it had come then. */
  #released({ at, requestId }: RequestReleased, went: EndpointId | undefined, waits: boolean): void {
    const arrived = this.#waiting.get(requestId);
    if (arrived === undefined || waits) return;
    this.#waiting.delete(requestId);
    if (went === undefined) this.leave("was sent nowhere");
    else this.#placed({ ...arrived, at }, went);
  }

  #placed(input: RequestArrived, endpoint: EndpointId): void {
    const isKnown = this.#header.observed === undefined || isAttributed(input);
    if (!isKnown) this.leave("nobody knows where it went");
    else this.decisions++;
    this.#places.set(input.request.id, this.#inputs.length);
    this.#push(input, endpoint, isKnown);
  }

  /** Where it went became known later. */
  #moved({ requestId, endpoint }: RequestMoved): void {
    const place = this.#places.get(requestId);
    if (place === undefined) return;
    const before = this.#inputs[place]!;
    if (!before.isJudged) this.decisions++;
    this.#inputs[place] = { ...before, endpoint, isJudged: true };
  }

  #push(input: Input, endpoint: EndpointId | undefined, isJudged: boolean): void {
    this.#inputs.push({ input, endpoint, isJudged });
  }
}

/** Requests closer than this may be decided on in another order than they came to a bystander. */
const TOGETHER_MICROS = 3_000;

/**
 * Of another router's decisions those are no evidence that came together. They stand in the order of their endpoints' turns
 * before, from which the turns that follow are counted.
 */
function withoutOrder(inputs: readonly DecidedInput[]): {
  readonly inputs: readonly DecidedInput[];
  readonly together: number;
} {
  const ordered = [...inputs];
  const turns = new Map<EndpointId, number>();
  let [together, group, lastAt]: [number, number[], number] = [0, [], -Infinity];
  const close = (): void => {
    const turnOf = (place: number): number => turns.get(ordered[place]!.endpoint ?? "") ?? -1;
    const members = group.toSorted((a, b) => turnOf(a) - turnOf(b)).map((place) => ordered[place]!);
    group.forEach((place, i) => {
      const { at } = inputs[place]!.input;
      const member = members[i]!;
      if (group.length > 1) {
        if (member.isJudged) together++;
        ordered[place] = { ...member, input: { ...member.input, at }, isJudged: false };
      }
      turns.set(member.endpoint ?? "", place);
    });
    group = [];
  };
  for (const [place, { input }] of inputs.entries()) {
    if (input.kind !== "request-arrived") continue;
    if (input.at - lastAt >= TOGETHER_MICROS) close();
    group.push(place);
    lastAt = input.at;
  }
  close();
  return { inputs: ordered, together };
}

/** The other router whose decisions a trace has; undefined where they are gnomon's own. */
export function routerOfHeader({ observed }: TraceHeader): string | undefined {
  return observed?.router;
}

function isAttributed({ observed }: RequestArrived): boolean {
  return observed !== undefined && observed.by !== "none" && observed.endpoint !== "";
}
