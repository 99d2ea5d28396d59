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
  /** Lengths of the tokens that begin with two characters, longest first; those of one character apart. */
  readonly #lengthsByPair = new Map<number, number[]>();
  readonly #byContent = new Map<string, AddedToken>();
  readonly #only: string | undefined;
  readonly #anyFirst: RegExp | undefined;

  constructor(tokens: readonly AddedToken[]) {
    for (const token of tokens) {
      const { content } = token;
      this.#byContent.set(content, token);
      if (content.length < 2) continue;
      const lengths = new Set(this.#lengthsByPair.get(pairAt(content, 0))).add(content.length);
      this.#lengthsByPair.set(
        pairAt(content, 0),
        [...lengths].sort((a, b) => b - a),
      );
    }
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
    for (const length of this.#lengthsByPair.get(pairAt(text, start)) ?? []) {
      const token = this.#byContent.get(text.slice(start, start + length));
      if (token !== undefined) return token;
    }
    return this.#byContent.get(text[start]!);
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
