/** Does something once the sockets had their turn. */
export interface TurnTaker {
  turnCame(): void;
}

let waiting: TurnTaker[] = [];

/**
 * Takes its turn once what the sockets have at hand was read: the ends of kept connections, and bytes that nobody asked
 * for.
 */
export function afterReads(taker: TurnTaker): void {
  if (waiting.push(taker) === 1) setImmediate(takeTurns);
}

function takeTurns(): void {
  const all = waiting;
  waiting = [];
  for (const taker of all) taker.turnCame();
}
