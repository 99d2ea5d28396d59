/** What a part of a tool call's text shows to a client that streams. */
export interface ToolCallDelta {
  /** The text so far has come to hold the tool's name. */
  readonly named: boolean;
  readonly arguments: string;
}

/**
 * A tool call as a model of the Hermes family writes it, from which vLLM's parser makes the fields that a client sees:
 * the name once it is complete, the arguments as they come, of the rest nothing.
 */
export class ToolCallText {
  readonly text: string;
  readonly #argumentsJson: string;
  readonly #nameEnd: number;
  readonly #argumentsStart: number;

  constructor(name: string, argumentsJson: string) {
    const named = `<tool_call>\n{"name": ${JSON.stringify(name)}`;
    const head = `${named}, "arguments": `;
    this.text = `${head}${argumentsJson}}\n</tool_call>`;
    this.#argumentsJson = argumentsJson;
    this.#nameEnd = named.length;
    this.#argumentsStart = head.length;
  }

  /** The arguments, if this many characters are the whole call. */
  parse(characters: number): string | undefined {
    return characters >= this.text.length ? this.#argumentsJson : undefined;
  }

  /** What characters `from` to `to` add. */
  delta(from: number, to: number): ToolCallDelta {
    const start = Math.max(0, from - this.#argumentsStart);
    const end = Math.max(0, to - this.#argumentsStart);
    return {
      named: from < this.#nameEnd && to >= this.#nameEnd,
      arguments: this.#argumentsJson.slice(start, end),
    };
  }
}
