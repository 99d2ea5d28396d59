/** What vLLM writes before a request's id in the answer's own. */
const ANSWERS_PREFIX = /^(?:chatcmpl|cmpl|embd|pool|classify|score|rerank|transcribe|translate|resp)[-_]/;
/** What the gateway adds to an id that a client gave, which need not be unique. */
const SEQUENCE = /^\.[0-9a-z]+$/;

/**
 * Whether a request of a trace is the one that somebody asks for by an id that its client saw: the answer's `x-request-id`, or the
 * `id` in its body. Several are, where a client gave them one id.
 */
export function isAskedBy(asked: string): (requestId: string) => boolean {
  const names = new Set([asked, asked.replace(ANSWERS_PREFIX, "")]);
  return (requestId) =>
    [...names].some(
      (name) => requestId === name || (requestId.startsWith(name) && SEQUENCE.test(requestId.slice(name.length))),
    );
}

/** Of those that an id may mean, those that it means: one that is the very id before all others. */
export function asked(id: string, requestIds: readonly string[]): readonly string[] {
  return requestIds.includes(id) ? [id] : requestIds.filter(isAskedBy(id));
}
