/**
 * Largest metrics page that is read, unless configured otherwise. vLLM's are 50-75 KB with one rank or two, and 31 KB more
 * for each further one; each combination of adapters that ever ran keeps a line of 100 to 300 bytes. So these are 32 ranks,
 * or 16 and some 2,000 combinations.
 */
export const EXPOSITION_BYTES_MAX_DEFAULT = 1024 * 1024;

/** Longest line of a wanted sample: 1,000 adapters by their names. A longer one counts as malformed. */
const LINE_CHARS_MAX = 65_536;
/** Labels of a sample; vLLM's information series have some 30. A sample with more counts as malformed. */
const LABELS_MAX = 256;
/** Characters after which whatever else the event loop has to do gets its turn: half a millisecond; most pages are shorter. */
const SLICE_CHARS = 131_072;

/** Sees one sample. `labels` belongs to the caller's page and may be kept. */
export type SampleVisitor = (name: string, labels: ReadonlyMap<string, string>, value: number) => void;

/**
 * Reads Prometheus' text format, and OpenMetrics' as far as samples go: comments, timestamps and exemplars are skipped.
 * Only samples whose full name (with `_sum`, `_total`, ...) is wanted are parsed and visited, in the page's order; of
 * the others, which are most of a page, only the name is compared; a family of which nothing is wanted is passed over.
 * It pauses after each slice of the page.
 *
 * Returns the number of wanted lines that could not be read; those are left out.
 */
export function* readExposition(
  page: string,
  wanted: ReadonlySet<string>,
  visit: SampleVisitor,
): Generator<void, number> {
  const comments = new NextComment(page);
  let malformed = 0;
  let name = "";
  let isWanted = false;
  let pauseAt = SLICE_CHARS;
  for (let start = 0; start < page.length;) {
    if (start >= pauseAt) {
      pauseAt = start + SLICE_CHARS;
      yield;
    }
    const newline = page.indexOf("\n", start);
    const end = newline < 0 ? page.length : newline;
    start = skipBlanks(page, start, end);
    if (page.startsWith(TYPE, start)) {
      start = behindUnwanted(page, start + TYPE.length, end, wanted, comments);
      continue;
    }
    if (start < end && page.charCodeAt(start) !== HASH) {
      if (name === "" || !page.startsWith(name, start) || !endsName(page.charCodeAt(start + name.length))) {
        let nameEnd = start;
        while (nameEnd < end && !endsName(page.charCodeAt(nameEnd))) nameEnd++;
        name = page.slice(start, nameEnd);
        isWanted = wanted.has(name);
      }
      if (isWanted && !readSample(page, name, start + name.length, end, visit)) malformed++;
    }
    start = end + 1;
  }
  return malformed;
}

const TAB = 9;
const CARRIAGE_RETURN = 13;
const BLANK = 32;
const QUOTE = 34;
const HASH = 35;
const COMMA = 44;
const EQUALS = 61;
const BACKSLASH = 92;
const OPEN = 123;
const CLOSE = 125;

const TYPE = "# TYPE ";
/** What may stand between a family's name and the end of a sample's name. */
const SUFFIXES: ReadonlySet<string> = new Set(["", "_bucket", "_sum", "_count", "_created", "_total", "_info"]);

const SUFFIX_CHARS_MAX = Math.max(...[...SUFFIXES].map((suffix) => suffix.length));

/** Families of which some sample is wanted, for each set of wanted names; those are few and live as long as the process. */
const WANTED_FAMILIES = new WeakMap<ReadonlySet<string>, ReadonlySet<string>>();

/** Where the next line of a page begins that is a comment at its first character, asked for at places that only grow. */
class NextComment {
  /** The newline before it; the page's length where there is none. */
  newline = -1;
  /** Where the line before it begins. */
  lineBefore = 0;
  readonly #page: string;

  constructor(page: string) {
    this.#page = page;
  }

  /** A search ends where the one before it did, so that all of them together see each character once. */
  seek(from: number): void {
    if (this.newline >= from) return;
    const found = this.#page.indexOf("\n#", from);
    this.newline = found < 0 ? this.#page.length : found;
    this.lineBefore = found < 0 ? found : this.#page.lastIndexOf("\n", found - 1) + 1;
  }
}

/**
 * Where to read on after the TYPE line whose family's name begins at `from`: at the next line; or behind the family, if
 * no sample of it is wanted, and the first and the last line up to the next comment are its own. A family's lines are
 * one group (Prometheus exposition formats), so those between are its own too.
 */
function behindUnwanted(
  page: string,
  from: number,
  end: number,
  wanted: ReadonlySet<string>,
  comments: NextComment,
): number {
  let nameEnd = from;
  while (nameEnd < end && page.charCodeAt(nameEnd) !== BLANK) nameEnd++;
  if (nameEnd >= end) return end + 1;
  const family = page.slice(from, nameEnd);
  if (wantedFamilies(wanted).has(family) || !isSampleOf(page, family, end + 1)) return end + 1;
  comments.seek(end + 1);
  if (comments.newline === page.length) return end + 1;
  return isSampleOf(page, family, comments.lineBefore) ? comments.newline + 1 : end + 1;
}

function isSampleOf(page: string, family: string, start: number): boolean {
  if (!page.startsWith(family, start)) return false;
  const suffix = start + family.length;
  let at = suffix;
  while (at - suffix <= SUFFIX_CHARS_MAX && at < page.length && !endsName(page.charCodeAt(at))) at++;
  return SUFFIXES.has(page.slice(suffix, at));
}

function wantedFamilies(wanted: ReadonlySet<string>): ReadonlySet<string> {
  let families = WANTED_FAMILIES.get(wanted);
  if (families === undefined) {
    const all = [...wanted].flatMap((name) =>
      [...SUFFIXES]
        .filter((suffix) => name.endsWith(suffix))
        .map((suffix) => name.slice(0, name.length - suffix.length)),
    );
    WANTED_FAMILIES.set(wanted, (families = new Set(all)));
  }
  return families;
}

const NO_LABELS: ReadonlyMap<string, string> = new Map();

function isBlank(code: number): boolean {
  return code === BLANK || code === TAB || code === CARRIAGE_RETURN;
}

function endsName(code: number): boolean {
  return code === OPEN || isBlank(code);
}

function skipBlanks(page: string, from: number, end: number): number {
  let at = from;
  while (at < end && isBlank(page.charCodeAt(at))) at++;
  return at;
}

function readSample(page: string, name: string, from: number, end: number, visit: SampleVisitor): boolean {
  if (end - from > LINE_CHARS_MAX) return false;
  let at = skipBlanks(page, from, end);
  let labels = NO_LABELS;
  if (page.charCodeAt(at) === OPEN) {
    const read = new Map<string, string>();
    at = readLabels(page, at + 1, end, read);
    if (at < 0) return false;
    labels = read;
  }
  at = skipBlanks(page, at, end);
  let valueEnd = at;
  while (valueEnd < end && !isBlank(page.charCodeAt(valueEnd))) valueEnd++;
  const value = readValue(page.slice(at, valueEnd));
  if (value === undefined) return false;
  visit(name, labels, value);
  return true;
}

/** Returns the position after the closing brace, or -1. */
function readLabels(page: string, from: number, end: number, labels: Map<string, string>): number {
  let at = from;
  for (;;) {
    while (at < end && (isBlank(page.charCodeAt(at)) || page.charCodeAt(at) === COMMA)) at++;
    if (at >= end) return -1;
    if (page.charCodeAt(at) === CLOSE) return at + 1;
    const nameStart = at;
    while (at < end && page.charCodeAt(at) !== EQUALS) at++;
    const name = page.slice(nameStart, at).trimEnd();
    at = skipBlanks(page, at + 1, end);
    if (name === "" || page.charCodeAt(at) !== QUOTE || at >= end) return -1;
    const valueStart = at + 1;
    at = valueStart;
    let escaped = false;
    while (at < end && page.charCodeAt(at) !== QUOTE) {
      if (page.charCodeAt(at) === BACKSLASH) {
        escaped = true;
        at++;
      }
      at++;
    }
    if (at >= end) return -1;
    if (labels.size >= LABELS_MAX) return -1;
    const value = page.slice(valueStart, at);
    labels.set(name, escaped ? unescapeLabel(value) : value);
    at++;
  }
}

function unescapeLabel(text: string): string {
  return text.replace(/\\(.)/g, (whole, code: string) =>
    code === "n" ? "\n" : code === "\\" || code === '"' ? code : whole,
  );
}

function readValue(text: string): number | undefined {
  const value = Number(text);
  if (!Number.isNaN(value)) return text === "" ? undefined : value;
  switch (text.toLowerCase()) {
    case "nan":
      return NaN;
    case "inf":
    case "+inf":
      return Infinity;
    case "-inf":
      return -Infinity;
    default:
      return undefined;
  }
}
