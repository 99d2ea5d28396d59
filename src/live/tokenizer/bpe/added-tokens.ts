export interface AddedToken {
  readonly id: number;
  readonly content: string;
}

export interface AddedMatch extends AddedToken {
  readonly start: number;
}

/**
 * Finds the tokens that are taken out of a text before anything else, wherever they come from: leftmost first, the
 * longest of those that start at one place.
 */
export class AddedTokens {
  /** Candidates by their first two characters, longest first; those of one character apart. */
  readonly #byPair = new Map<number, AddedToken[]>();
  readonly #single = new Map<number, AddedToken>();
  readonly #only: string | undefined;
  readonly #anyFirst: RegExp | undefined;

  constructor(tokens: readonly AddedToken[]) {
    for (const token of tokens) {
      const { content } = token;
      if (content.length === 1) this.#single.set(content.charCodeAt(0), token);
      if (content.length < 2) continue;
      const list = this.#byPair.get(pairAt(content, 0)) ?? [];
      list.push(token);
      this.#byPair.set(pairAt(content, 0), list);
    }
    for (const list of this.#byPair.values()) list.sort((a, b) => b.content.length - a.content.length);
    const firsts = [...new Set(tokens.map(({ content }) => content.slice(0, 1)))].filter((first) => first !== "");
    this.#only = firsts.length === 1 ? firsts[0] : undefined;
    this.#anyFirst = firsts.length > 1 ? new RegExp(`[${firsts.map(escaped).join("")}]`, "g") : undefined;
  }

  /** The first one at or behind `from`. */
  find(text: string, from: number): AddedMatch | undefined {
    let start = this.#candidate(text, from);
    while (start >= 0) {
      const token = this.#at(text, start);
      if (token !== undefined) return { id: token.id, content: token.content, start };
      start = this.#candidate(text, start + 1);
    }
    return undefined;
  }

  #at(text: string, start: number): AddedToken | undefined {
    const list = this.#byPair.get(pairAt(text, start));
    const longest = list?.find(({ content }) => text.startsWith(content, start));
    return longest ?? this.#single.get(text.charCodeAt(start));
  }

  #candidate(text: string, from: number): number {
    if (this.#only !== undefined) return text.indexOf(this.#only, from);
    if (this.#anyFirst === undefined) return -1;
    this.#anyFirst.lastIndex = from;
    return this.#anyFirst.exec(text)?.index ?? -1;
  }
}

function escaped(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
}

/** NaN, which no token is filed under, at the last character. */
function pairAt(text: string, at: number): number {
  return 0x10000 * text.charCodeAt(at) + text.charCodeAt(at + 1);
}
