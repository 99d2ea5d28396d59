/**
 * Whether a Content-Type begins with this media type, which is in lower case: its letters may be of either case, and
 * parameters may follow it (RFC 9110, 8.3.1).
 */
export function isMediaType(contentType: string, type: string): boolean {
  // As nearly all engines write it.
  return contentType.startsWith(type) || contentType.slice(0, type.length).toLowerCase() === type;
}
