/**
 * The headers of one request, over the flat list that Node keeps. Building Node's own object of them costs more than all
 * the look-ups that a request makes.
 */
export class RequestHeaders {
  /** Names and values by turns, as they came. */
  readonly raw: readonly string[];
  /** Names in lower case. */
  readonly names: readonly string[];

  constructor(raw: readonly string[]) {
    this.raw = raw;
    const names: string[] = [];
    for (let i = 0; i < raw.length; i += 2) names.push(raw[i]!.toLowerCase());
    this.names = names;
  }

  /** The first value; "" where there is none. `name` is in lower case. */
  get(name: string): string {
    const at = this.names.indexOf(name);
    return at < 0 ? "" : this.raw[2 * at + 1]!;
  }
}
