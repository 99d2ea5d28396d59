import type { PeerWindow } from "#core/request/peer-news.ts";

/** Of the text: another one is not read. It outlives the version of what gateways send one another. */
const FORMAT = 1;
/** Characters of one text at most; windows beyond, those that used something longest ago, are left out. */
const CHARS_MAX = 1_048_576;
const HEAD_CHARS_MAX = 128;
const WINDOWS_MAX = 8_192;
const COUNTS_MAX = 64;

/** What is used of limits, for gateways that start when none is there, and how many windows there was no room for. */
export function keptLimitsText(
  windows: readonly PeerWindow[],
  keptMillis: number,
): { readonly text: string; readonly leftOut: number } {
  const rows: string[] = [];
  let chars = 0;
  for (const { limit, measure, subject, passedMicros, counts } of windows) {
    const row = JSON.stringify([limit, measure, subject, passedMicros, ...counts]);
    chars += row.length + 1;
    if (chars > CHARS_MAX || rows.length === WINDOWS_MAX) break;
    rows.push(row);
  }
  const text = `{"format":${FORMAT},"keptMillis":${keptMillis},"windows":[${rows.join(",")}]}`;
  return { text, leftOut: windows.length - rows.length };
}

/** The windows of such a text, `leftMillis` before it is forgotten. Throws Error for anything else. */
export function windowsOfText(text: string, leftMillis: number): PeerWindow[] {
  if (text.length > CHARS_MAX + HEAD_CHARS_MAX) throw new Error("it is too long");
  const { format, keptMillis, windows } = Object(JSON.parse(text)) as Partial<Record<string, unknown>>;
  if (format !== FORMAT) throw new Error(`expected format ${FORMAT}, got ${JSON.stringify(format)}`);
  if (!isWhole(keptMillis) || !Array.isArray(windows) || windows.length > WINDOWS_MAX) throw new Error("its head");
  const ageMicros = Math.max(0, Math.round((keptMillis - leftMillis) * 1_000));
  return windows.map((row, i) => {
    const [limit, measure, subject, passedMicros, ...counts] = Array.isArray(row) ? (row as unknown[]) : [];
    const isRow = typeof limit === "string" && typeof measure === "string" && typeof subject === "string";
    if (!isRow || !isWhole(passedMicros) || counts.length > COUNTS_MAX || !counts.every(isWhole)) {
      throw new Error(`window ${i} is none`);
    }
    return { kind: "window", limit, measure, subject, passedMicros, ageMicros, counts };
  });
}

function isWhole(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}
