import { isFields } from "../base/fields.ts";
import type { ParsedRequest } from "./parse-request.ts";
import { withFields } from "../http/request-body.ts";

/** What a request is sent as. */
export interface SentContent {
  readonly path: string;
  readonly body: Buffer;
}

interface AddedFields {
  readonly hidesUsage: boolean;
  readonly more: object | undefined;
}

/** What an engine gets: the client's own bytes, but for fields that must be there. */
export function engineBody(
  body: Buffer,
  { model: asked, fields }: ParsedRequest,
  model: string,
  { hidesUsage, more }: AddedFields,
): Buffer {
  const isNamed = asked === model || fields === undefined;
  if (isNamed && !hidesUsage && more === undefined) return body;
  const options = fields?.["stream_options"];
  const merged = { ...(isFields(options) ? options : {}), include_usage: true, continuous_usage_stats: false };
  return withFields(body, {
    ...(!isNamed && { model }),
    ...(hidesUsage && { stream_options: merged }),
    ...more,
  });
}
