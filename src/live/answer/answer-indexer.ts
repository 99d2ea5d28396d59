import type { PathRouter } from "#core/path/path-router.ts";
import { nowMicros } from "../base/clock.ts";
import { loopTurn, STAYS } from "../base/loop-turn.ts";
import { countUp, type GatewayCounters } from "../base/gateway-counters.ts";
import type { ChainEnd } from "../tokenizer/text/chain-state.ts";
import type { Words } from "../tokenizer/text/word-source.ts";

/** The text of an answer whose request has ended, on its way to tokens. */
export interface AnsweredText {
  readonly requestId: string;
  /** The text as it stands between the quotes of a JSON string. */
  readonly json: Buffer;
  /** As the engine counted, the last one included. */
  readonly outputTokens: number;
  /** The model ended it: what ended it need not be in the text. */
  readonly isStopped: boolean;
  /** Where the prompt ended. */
  readonly end: ChainEnd;
  readonly words: (text: string) => Words;
}

export interface AnswerIndexerOptions {
  readonly router: Pick<PathRouter, "accept">;
  readonly counters: GatewayCounters;
  /** Answers that wait at once; more are left unknown. */
  readonly waitingMax: number;
  /** Whether the process has better to do; answers are left unknown then. */
  readonly load: { readonly isBusy: boolean };
  readonly bug: (error: unknown) => void;
}

/**
 * Finds out the tokens of answers from their text, after their clients have them: one at a time, each at a turn of the
 * event loop that it has with all other long work of the process. For each that it takes the router gets
 * one input with what came of it.
 */
export class AnswerIndexer {
  readonly #options: AnswerIndexerOptions;
  #waiting: AnsweredText[] = [];
  #next = 0;
  #works = false;

  constructor(options: AnswerIndexerOptions) {
    this.#options = options;
  }

  get waiting(): number {
    return this.#waiting.length - this.#next;
  }

  /** False where it has no room, or the process no time. */
  add(answer: AnsweredText): boolean {
    const { counters, waitingMax, load } = this.#options;
    if (load.isBusy) {
      countUp(counters.answersUnknown, "busy");
      return false;
    }
    if (this.waiting >= waitingMax) {
      countUp(counters.answersUnknown, "full");
      return false;
    }
    this.#waiting.push(answer);
    if (!this.#works) {
      this.#works = true;
      void this.#work();
    }
    return true;
  }

  /** Lets go what waits. */
  close(): void {
    this.#waiting = [];
    this.#next = 0;
  }

  async #work(): Promise<void> {
    while (this.waiting > 0) {
      await loopTurn(STAYS);
      const answer = this.#shift();
      if (answer !== undefined) await this.#report(answer);
    }
    this.#works = false;
  }

  #shift(): AnsweredText | undefined {
    const answer = this.#waiting[this.#next];
    if (answer === undefined) return undefined;
    this.#next++;
    if (this.#next === this.#waiting.length) this.close();
    return answer;
  }

  async #report(answer: AnsweredText): Promise<void> {
    const { counters, router, bug } = this.#options;
    try {
      const words = answer.words(JSON.parse(`"${answer.json.toString("utf8")}"`) as string);
      const answerHashes = hashesOf(answer, words instanceof Promise ? await words : words);
      if (typeof answerHashes === "string") countUp(counters.answersUnknown, answerHashes);
      else countUp(counters.answersKnown, "text");
      router.accept({
        kind: "answer-known",
        at: nowMicros(),
        requestId: answer.requestId,
        ...(typeof answerHashes !== "string" && { answerHashes }),
      });
    } catch (error) {
      counters.internalErrors++;
      bug(error);
    }
  }
}

/**
 * The blocks of what the engine computed: all tokens but the last. As many as it counted, or one fewer where the model
 * ended the answer, with a token that the text does not show.
 */
function hashesOf(
  { outputTokens, isStopped, end }: AnsweredText,
  words: Int32Array | undefined,
): Int32Array | "tokenizer" | "count" {
  if (words === undefined) return "tokenizer";
  const fits = words.length === outputTokens || (isStopped && words.length === outputTokens - 1);
  return fits ? end.hashesBehind(words.subarray(0, outputTokens - 1)) : "count";
}
