import { KV_EVENTS_LOST_REASONS } from "#core/endpoint/knowledge.ts";
import type { Input } from "#core/input.ts";
import { type Fields, expected } from "./fields.ts";
import { decodeHashes, encodeHashes } from "./hash-text.ts";

/** What an engine reports of its cache, and how its reports arrive. */
type Report = Extract<Input, { readonly kind: `blocks-${string}` | `kv-events-${string}` }>;

/** Its fields behind the endpoint. What is as usual is left out. */
export function encodeReport(report: Report): string {
  switch (report.kind) {
    case "blocks-stored": {
      const { hashes, starts = [] } = report;
      return `,"lanes":"${encodeHashes(hashes)}"${starts.length === 0 ? "" : `,"starts":[${starts.join()}]`}${mediumOf(report)}`;
    }
    case "blocks-removed": {
      const { hashes, unknownBlocks = 0 } = report;
      return `,"lanes":"${encodeHashes(hashes)}"${unknownBlocks === 0 ? "" : `,"unknownBlocks":${unknownBlocks}`}${mediumOf(report)}`;
    }
    case "blocks-cleared":
      return report.inOrder === true ? ',"inOrder":true' : "";
    case "kv-events-alive":
      return report.isComplete ? ',"complete":true' : "";
    case "kv-events-lost":
      return `,"reason":"${report.reason}"`;
    case "kv-events-missed":
      return "";
  }
}

export function decodeReport(kind: Report["kind"], at: number, fields: Fields): Report {
  const endpoint = fields.string("endpoint");
  switch (kind) {
    case "blocks-stored": {
      const hashes = decodeBlocks(fields);
      const starts = fields.has("starts") && { starts: decodeStarts(fields, hashes) };
      return { kind, at, endpoint, hashes, ...starts, ...decodeMedium(fields) };
    }
    case "blocks-removed": {
      const unknownBlocks = fields.integer("unknownBlocks", 0, 0);
      const unknown = unknownBlocks > 0 && { unknownBlocks };
      return { kind, at, endpoint, hashes: decodeBlocks(fields), ...unknown, ...decodeMedium(fields) };
    }
    case "blocks-cleared": {
      const inOrder = fields.boolean("inOrder", false);
      return { kind, at, endpoint, ...(inOrder && { inOrder }) };
    }
    case "kv-events-alive":
      return { kind, at, endpoint, isComplete: fields.boolean("complete", false) };
    case "kv-events-lost":
      return { kind, at, endpoint, reason: fields.oneOf("reason", KV_EVENTS_LOST_REASONS) };
    case "kv-events-missed":
      return { kind, at, endpoint };
  }
}

function mediumOf({ medium }: { readonly medium?: "host" }): string {
  return medium === undefined ? "" : `,"medium":"${medium}"`;
}

function decodeMedium(fields: Fields): { readonly medium?: "host" } {
  return fields.has("medium") ? { medium: fields.oneOf("medium", ["host"]) } : {};
}

function decodeBlocks(fields: Fields): Int32Array {
  return decodeHashes(fields.string("lanes"), fields.pathOf("lanes"));
}

function decodeStarts(fields: Fields, hashes: Int32Array): number[] {
  const starts = fields.list("starts");
  let before = 0;
  return starts.map((start) => {
    if (typeof start !== "number" || !Number.isInteger(start) || start <= before || 2 * start >= hashes.length)
      throw expected(fields.pathOf("starts"), "ascending places of blocks", starts);
    before = start;
    return start;
  });
}
