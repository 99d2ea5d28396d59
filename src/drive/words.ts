/**
 * 256 words of three letters that are one token each, with the space before them, in the byte-level vocabularies of
 * GPT-2, cl100k, o200k and Llama 3. Four bytes and one token a word: a prompt of n words has n tokens for those models
 * and 4n characters for everyone who estimates.
 */
const WORDS =
  "the and for you con are not can his has all who one had off man any app her new get she our him how act " +
  "bet two may did add see ind use now way own set say mon min col mod fin sur sim ear run cur car law day " +
  "war few leg put art lot fun big ask far bus tri top pay old why win dev air bit sit mar job hop dam yet " +
  "low ant ben mom cut net ago bad doc due six cop lab red hit bar box dig pen arm dog tal son pan ten guy " +
  "inn bud gas yes cat lay map web bed pun aim beg eye fit rat nor sun fix pet fan eat nom ice mix kid san " +
  "sea bug gar odd van rot row rid dry egg alt pit hol tow fly bag aid kit tun pal rub hat was pro com but " +
  "wor whe int out res per dis pre its rec spe acc att inc pol sec inv rem rel def don reg imp sub dec end " +
  "bel eff ent hel str num ret ref exp ins ser ter det mem ext wom med che cre rep met fam cor too inf loc " +
  "val iss cle dep fil opp tra pri soc pur let hum adv beh got eas var ide mov unt pos men cap dri pat pop " +
  "mil vis aff ann sol est par equ occ bas del tax cho non lim fac eng htt deb mus saf try";

/** Bytes of a word with its space. */
export const WORD_BYTES = 4;
export const WORDS_COUNT = 256;

/** Each word, its space first, as the 32-bit integer that has these four bytes in this machine's memory. */
export const WORD_VALUES: Uint32Array = Uint32Array.from(WORDS.split(" "), (word) => {
  const bytes = Uint8Array.from(Buffer.from(` ${word}`, "latin1"));
  return new Uint32Array(bytes.buffer)[0] ?? 0;
});
