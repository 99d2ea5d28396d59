import { issue, validationError } from "../http/body.ts";
import { isOpen, type ServedRequest } from "../http/exchange.ts";
import { sendJson } from "../http/reply.ts";
import type { Service } from "../service/service.ts";
import { PAUSE_MODES, type PauseMode, type SleepLevel } from "../service/sleep-mode.ts";

/** POST /sleep?level=1&mode=abort. Answers once nothing is computed any more. */
export function handleSleep({ sleep }: Service, exchange: ServedRequest): void {
  const query = queryOf(exchange);
  const level = readLevel(query.get("level") ?? "1");
  const mode = readMode(query.get("mode") ?? "abort");
  void sleep.sleep(level, mode).then(() => {
    if (isOpen(exchange)) sendJson(exchange, 200, JSON.stringify({ status: "sleeping", level }));
  });
}

/** POST /wake_up, with `tags` for a part of the memory. */
export function handleWakeUp({ sleep }: Service, exchange: ServedRequest): void {
  const tags = queryOf(exchange).getAll("tags");
  const given = tags.length === 0 ? undefined : tags;
  const status = sleep.wake(given) ? "awake" : "sleeping";
  sendJson(exchange, 200, JSON.stringify({ status, tags: given ?? null }));
}

/** GET /is_sleeping. */
export function handleIsSleeping({ sleep }: Service, exchange: ServedRequest): void {
  sendJson(exchange, 200, JSON.stringify({ is_sleeping: sleep.isSleeping }));
}

function queryOf({ request }: ServedRequest): URLSearchParams {
  const [, query = ""] = (request.url ?? "").split("?", 2);
  return new URLSearchParams(query);
}

function readLevel(text: string): SleepLevel {
  const refused = (type: string, message: string, rest = "") =>
    validationError([issue(type, "query.level", message, text, rest)], "query.level");
  if (!/^\s*[-+]?\d+\s*$/.test(text)) {
    throw refused("int_parsing", "Input should be a valid integer, unable to parse string as an integer");
  }
  const level = Number(text);
  if (level > 2) throw refused("less_than_equal", "Input should be less than or equal to 2", ", 'ctx': {'le': 2}");
  if (level < 0)
    throw refused("greater_than_equal", "Input should be greater than or equal to 0", ", 'ctx': {'ge': 0}");
  return level as SleepLevel;
}

function readMode(text: string): PauseMode {
  const mode = PAUSE_MODES.find((one) => one === text);
  if (mode !== undefined) return mode;
  const expected = "'abort', 'wait' or 'keep'";
  const rest = `, 'ctx': {'expected': "${expected}"}`;
  throw validationError(
    [issue("literal_error", "query.mode", `Input should be ${expected}`, text, rest)],
    "query.mode",
  );
}
