import type { Words } from "../text/word-source.ts";
import type { TokenizerJson } from "./tokenizer-json.ts";

const SPECIALS_CHECKED = 12;

/** Texts that distinguish one pre-tokenizer, normalizer or merge order from another. */
const TEXTS: readonly string[] = [
  "",
  "a",
  "Hello, world! It's 12345 o'clock; we'LL see, they'Ve gone, I'M 'sure' 'ſ x'ſy.",
  "The quick brown fox jumps over the lazy dog. ".repeat(20),
  "   leading, trailing   \n\n\n  \t\ttabs \r\n\r\n windows \n",
  "\u00a0\u0085\u2028\u3000\ufeff\u200b\u180e spaces of all kinds \u2003x\u00a0y",
  "function f(a,b){\n    return a===b?[1,22,333,4444]:{x:0x1F,'y':\"z\"};\n}\n// ----------====>>>>\n",
  "def main() -> None:\n\tprint(f'{x!r:>10}')\n\n\nif __name__ == '__main__':\n\tmain()\n",
  '<div class="a"><br/></div> <|not a token|> <| |> </ >',
  "你好，世界。これはテストです。안녕하세요 세계! Привет, мир! مرحبا بالعالم १२३४५ ²³½ Ⅷ",
  "é e\u0301 å a\u030a n\u0303 \u1e9b\u0323 q\u0307\u0323 \u0958 가 \u1100\u1161 \uac00\u11a8",
  "🤣👍🏽👨‍👩‍👧‍👦🇩🇪🏳️‍🌈 z̷̰͝a̸̯̎l̵͚̃g̶̤͝o̶͓͐",
  "\ud800 lone \udc00 surrogates \ud83d",
  "x".repeat(300) + "=".repeat(300) + " ".repeat(300) + "\n".repeat(40) + "9".repeat(40),
  "https://example.org/a/b?c=d&e=%20f#g  user@example.com  C:\\dir\\file.txt 1,234.56 -7e-9",
  "\u0000\u0001\u001b[0m\u007f\u0080\u00ad\u009f",
];

/**
 * Compares two encoders on fixed texts, with and without special tokens in them. Returns undefined where they agree,
 * else what they differ on.
 */
export async function selfCheck(
  json: TokenizerJson,
  own: (text: string) => Words,
  library: (text: string) => Promise<ArrayLike<number>>,
): Promise<string | undefined> {
  const specials = json.added_tokens.slice(0, SPECIALS_CHECKED).map(({ content }) => content);
  const mixed = TEXTS.map((text, at) => {
    const special = specials[at % Math.max(1, specials.length)] ?? "";
    return `${special}${text}${special}${special} ${TEXTS[(at + 5) % TEXTS.length]}\n${special}`;
  });
  const texts = [...TEXTS, ...mixed, TEXTS.join(" "), TEXTS.join("")].map((text) => text.toWellFormed());
  for (const [at, text] of texts.entries()) {
    const expected = await library(text);
    const found = await own(text);
    if (found === undefined) return `check text ${at} was given up`;
    if (found.length !== expected.length || found.some((id, i) => id !== expected[i])) {
      return `check text ${at} got other tokens`;
    }
  }
  return undefined;
}
