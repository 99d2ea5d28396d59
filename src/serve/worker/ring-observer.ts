import type { RequestObserver } from "#live/gateway-parts.ts";
import { MAIL, type Note } from "#live/worker/mail.ts";
import type { Outbox } from "#live/worker/outbox.ts";
import { writeSummary } from "#live/worker/summary-mail.ts";

/** Passes on what became of a worker's requests, to the one thread that counts and logs. */
export function ringObserver(outbox: Outbox): Required<RequestObserver> & { note(note: Note): void } {
  const { writer } = outbox;
  const note = (one: Note): void => {
    writer.begin(MAIL.note);
    writer.text(JSON.stringify(one));
    outbox.send(false);
  };
  return {
    finished: (summary) => {
      writer.begin(MAIL.summary);
      writeSummary(writer, summary);
      outbox.send(false);
    },
    retried: (fault) => {
      writer.begin(MAIL.retried);
      writer.name(fault);
      outbox.send(false);
    },
    tokenizerFellBack: (model) => {
      writer.begin(MAIL.fellBack);
      writer.name(model);
      outbox.send(false);
    },
    fault: (event) => note({ kind: "fault", event }),
    bug: (error) => note({ kind: "bug", frames: error instanceof Error ? (error.stack ?? "") : "" }),
    note,
  };
}
