import type { PlannedPrompt, PromptChains } from "./prompt-chains.ts";
import type { MemoNode, NodeHandle } from "./prefix-memo.ts";
import type { CacheScope, ChatMessage } from "./text/tokenizer.ts";
import type { Step } from "./text/word-source.ts";

/** Where the chain of a chat's beginning stands. */
export interface BegunChat {
  readonly node: MemoNode;
  /** Messages of the beginning, each a step. */
  readonly messages: number;
  /** Of the last one. */
  readonly role: string;
}

interface Filed extends Omit<BegunChat, "node"> {
  readonly handle: NodeHandle;
  readonly scope: CacheScope;
}

/**
 * Beginnings of chats by the very array that holds their messages (`PromptSource.beginning`), so that a long chat costs no
 * walk through the messages that it had before: finding each in the memo compares its text, and of 70 messages of 400
 * characters that was a tenth of what a request cost. An entry lasts as long as its array, and keeps nothing that
 * the memo has dropped.
 */
export class BegunChats {
  readonly #chains: PromptChains;
  readonly #filed = new WeakMap<readonly ChatMessage[], Filed>();

  constructor(chains: PromptChains) {
    this.#chains = chains;
  }

  /**
   * What is to be encoded of a chat: all its steps, or those behind its beginning. `stepsBehind` makes the steps, one
   * for each message, of what follows where it is given something, or undefined where there are none; so is the answer
   * then.
   */
  plan(
    beginning: readonly ChatMessage[] | undefined,
    scope: CacheScope,
    stepsBehind: (begun: BegunChat | undefined) => Step[] | undefined,
  ): Pick<PlannedPrompt, "steps" | "begun"> | undefined {
    const known = beginning && this.#find(beginning, scope);
    const steps = stepsBehind(known);
    if (steps === undefined || beginning === undefined || known !== undefined) return steps && { steps, begun: known };
    const begun = this.#look(beginning, scope, steps);
    return { steps: steps.slice(begun?.messages), begun };
  }

  #find(beginning: readonly ChatMessage[], scope: CacheScope): BegunChat | undefined {
    const filed = this.#filed.get(beginning);
    if (filed === undefined || filed.scope.model !== scope.model || filed.scope.salt !== scope.salt) return undefined;
    const { handle, messages, role } = filed;
    return handle.node && { node: handle.node, messages, role };
  }

  /** What the memo has of it, filed for the chats that follow. */
  #look(beginning: readonly ChatMessage[], scope: CacheScope, steps: readonly Step[]): BegunChat | undefined {
    const { length: messages } = beginning;
    const node = this.#chains.nodeBehind(scope, steps, messages);
    if (node === undefined || messages === 0) return undefined;
    const { role } = beginning[messages - 1]!;
    this.#filed.set(beginning, { handle: this.#chains.memo.handle(node), messages, role, scope });
    return { node, messages, role };
  }
}
