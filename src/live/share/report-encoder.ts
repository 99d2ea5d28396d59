import type { PeerCharged, PeerNews } from "#core/peer-news.ts";
import type { BlockChain } from "#core/prompt/block-chain.ts";
import { BlockTable } from "#trace/block-table.ts";
import { ByteWriter } from "./byte-writer.ts";
import { EXACT, NEWS_KINDS, NOTED, OUTCOMES, PREFILL, USER, WIRE_VERSION } from "./wire.ts";
import { encodeNoted } from "./noted-wire.ts";
import { type Report, REPORT_KINDS } from "./report.ts";

/** Blocks that later reports may refer to; beyond them all begins afresh. */
export const CHAIN_BLOCKS_MAX = 262_144;

/** A report as bytes. Of a prompt, only the blocks that no report before had: what it continues is named by number. */
export class ReportEncoder {
  readonly #table = new BlockTable(CHAIN_BLOCKS_MAX);
  #generation = 0;
  /** Blocks that were written, and those that needed not be. */
  blocksWritten = 0;
  blocksKnown = 0;

  /** What comes refers to nothing before it: for those who did not get all of it. */
  startAfresh(): void {
    this.#table.clear();
    this.#generation++;
  }

  encode({ kind, fingerprint, replica, epoch, sequence, news }: Report): Buffer {
    const to = new ByteWriter();
    to.byte(WIRE_VERSION);
    to.byte(REPORT_KINDS.indexOf(kind));
    to.whole(fingerprint);
    to.text(replica);
    to.whole(epoch);
    to.whole(sequence);
    to.whole(news.length);
    for (const one of news) this.#news(to, one);
    return to.taken();
  }

  #news(to: ByteWriter, news: PeerNews): void {
    to.byte(NEWS_KINDS.indexOf(news.kind));
    switch (news.kind) {
      case "charged":
        return this.#charged(to, news);
      case "first-token":
        to.whole(news.request);
        return to.whole(news.ttftMicros);
      case "prefilled":
        to.whole(news.request);
        return to.whole(news.prefillMicros);
      case "progress":
        to.whole(news.request);
        return to.whole(news.outputTokens);
      case "failed":
        return to.whole(news.request);
      case "released":
        to.whole(news.request);
        to.byte(OUTCOMES.indexOf(news.outcome));
        to.optional(news.promptTokens);
        to.optional(news.outputTokens);
        return to.optional(news.decodeMicros);
      case "held":
        to.text(news.endpoint);
        to.byte(news.session === undefined ? 0 : 1);
        if (news.session !== undefined) to.text(news.session);
        return this.#chain(to, news.blocks);
      case "used":
        for (const text of [news.model, news.tenant, news.user ?? ""]) to.text(text);
        for (const count of [news.requests, news.promptTokens, news.outputTokens]) to.whole(count);
        return undefined;
      case "window":
        for (const text of [news.limit, news.measure, news.subject]) to.text(text);
        for (const count of [news.passedMicros, news.counts.length, ...news.counts]) to.whole(count);
        return undefined;
      case "breaker":
        to.text(news.endpoint);
        to.byte(news.state === "open" ? 1 : 0);
        return to.whole(Math.round(news.pauseMicros));
    }
  }

  #charged(to: ByteWriter, news: PeerCharged): void {
    to.whole(news.request);
    to.whole(news.attempt);
    for (const text of [news.endpoint, news.profile, news.reason, news.model, news.tenant, news.session]) to.text(text);
    to.whole(news.sequences);
    // Counts of tokens are whole where they are exact; an estimate loses its fraction on the way.
    to.whole(Math.round(news.promptTokens));
    const { prefill, user, outputTokensMax: ceiling, noted } = news;
    const stage = (prefill === undefined ? 0 : PREFILL) + (noted === undefined ? 0 : NOTED);
    to.byte((news.promptTokensExact ? EXACT : 0) + (user === undefined ? 0 : USER) + stage);
    if (user !== undefined) to.text(user);
    to.optional(ceiling === undefined ? undefined : Math.round(ceiling));
    to.whole(Math.max(1, Math.round(news.newTokens)));
    if (prefill !== undefined) {
      to.text(prefill.endpoint);
      to.whole(Math.max(1, Math.round(prefill.newTokens)));
      to.byte(prefill.noted === undefined ? 0 : 1);
      if (prefill.noted !== undefined) encodeNoted(to, prefill.noted);
    }
    if (noted !== undefined) encodeNoted(to, noted);
    to.optional(news.outputTokens);
    this.#chain(to, news.blocks);
  }

  #chain(to: ByteWriter, chain: BlockChain): void {
    to.whole(chain.length);
    if (chain.length === 0) return;
    to.text(String(chain.blockTokens));
    if (chain.length > CHAIN_BLOCKS_MAX) return to.byte(0);
    if (!this.#table.fits(chain)) this.startAfresh();
    const { parent, first, known } = this.#table.add(chain);
    this.blocksKnown += known;
    this.blocksWritten += chain.length - known;
    to.byte(1);
    to.whole(this.#generation);
    to.optional(parent < 0 ? undefined : parent);
    to.whole(first);
    to.whole(chain.length - known);
    to.words(chain.hashes.subarray(2 * known, 2 * chain.length));
  }
}
