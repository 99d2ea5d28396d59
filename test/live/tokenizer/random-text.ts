import type { RandomStream } from "./random-stream.ts";

const POOLS: readonly string[] = [
  "abcdefghijklmnopqrstuvwxyzABCDEFGHIJ",
  "0123456789",
  "    \t\n\r\n",
  "'sS'tT'reRE'vE'LL'd'm'ſ",
  "中文字符日本語한국어",
  "éàüñçßøåſKÅ",
  "🤣👍🏽👨‍👩‍👧‍👦🇩🇪",
  "e\u0301\u0323\u0300\u0308か\u3099\u09fe\u1ac1\u0f71",
  "\u00a0\u0085\ufeff\u2028\u3000\u200b\u180e\u001c",
  '!@#$%^&*()-=_+[]{}|;:,.<>/?`~"\\',
  "\u{10000}\u{1e6e3}\u{16ff0}\u{11383}\u{113c9}",
  "१२३٤٥²½Ⅷ",
  "<|></||",
];
const SPECIALS: readonly string[] = [
  "<|eot_id|>",
  "<|start_header_id|>",
  "<|end_of_text|>",
  "<|reserved_special_token_1|>",
];

/** Text made to be hard for a tokenizer: every script, kind of space and mark, long runs, special tokens. */
export function randomText(random: RandomStream): string {
  let text = "";
  const parts = random.below(50);
  for (let part = 0; part < parts; part++) {
    const kind = random.below(100);
    if (kind < 5) text += random.of(SPECIALS);
    else if (kind < 15) text += String.fromCodePoint(random.below(0x11000));
    else if (kind < 18) text += String.fromCodePoint(random.below(0x110000));
    else if (kind < 21) text += random.of(["abc", "=", " ", "é", "\n", "7"]).repeat(random.below(90));
    else {
      const pool = Array.from(random.of(POOLS));
      for (let left = 1 + random.below(6); left > 0; left--) text += random.of(pool);
    }
  }
  return text.toWellFormed();
}
