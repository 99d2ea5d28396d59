export interface AddedToken {
  readonly id: number;
  readonly content: string;
}

export interface AddedMatch extends AddedToken {
  readonly start: number;
}

/** A beginning of tokens: what goes on from it by UTF-16 code unit, and the token that ends here. */
interface Branch {
  readonly next: Map<number, Branch>;
  token: AddedToken | undefined;
}

/**
 * Finds the tokens that are taken out of a text before anything else, wherever they come from: leftmost first, the
 * longest of those that start at one place. Letter by letter, so that a text made of their beginnings costs no more than
 * its length.
 */
export class AddedTokens {
  readonly #root: Branch = newBranch();
  readonly #only: string | undefined;
  readonly #anyFirst: RegExp | undefined;

  constructor(tokens: readonly AddedToken[]) {
    for (const token of tokens) if (token.content !== "") this.#file(token);
    const firsts = [...new Set(tokens.map(({ content }) => content.slice(0, 1)))].filter((first) => first !== "");
    this.#only = firsts.length === 1 ? firsts[0] : undefined;
    this.#anyFirst = firsts.length > 1 ? new RegExp(`[${firsts.map(escaped).join("")}]`, "g") : undefined;
  }

  /** The first one that starts at or behind `from` and before `until`. */
  find(text: string, from: number, until: number = text.length): AddedMatch | undefined {
    const within = until < text.length ? text.slice(0, until) : text;
    let start = this.#candidate(within, from);
    while (start >= 0) {
      const token = this.#at(text, start);
      if (token !== undefined) return { id: token.id, content: token.content, start };
      start = this.#candidate(within, start + 1);
    }
    return undefined;
  }

  #file(token: AddedToken): void {
    let branch = this.#root;
    for (let at = 0; at < token.content.length; at++) {
      const code = token.content.charCodeAt(at);
      let next = branch.next.get(code);
      if (next === undefined) branch.next.set(code, (next = newBranch()));
      branch = next;
    }
    branch.token = token;
  }

  #at(text: string, start: number): AddedToken | undefined {
    let found: AddedToken | undefined;
    let branch = this.#root.next.get(text.charCodeAt(start));
    for (let at = start + 1; branch !== undefined; at++) {
      found = branch.token ?? found;
      branch = branch.next.get(text.charCodeAt(at));
    }
    return found;
  }

  #candidate(text: string, from: number): number {
    if (this.#only !== undefined) return text.indexOf(this.#only, from);
    if (this.#anyFirst === undefined) return -1;
    this.#anyFirst.lastIndex = from;
    return this.#anyFirst.exec(text)?.index ?? -1;
  }
}

function newBranch(): Branch {
  return { next: new Map(), token: undefined };
}

function escaped(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
}
