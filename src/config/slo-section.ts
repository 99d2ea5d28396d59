import * as z from "zod";

const millis = () => z.number().gt(0).max(1e9).optional();
const CLASSES_MAX = 64;
const NAMES_MAX = 10_000;

const target = z
  .strictObject({
    ttftMillis: millis().describe("From a request's arrival to its first token."),
    tpotMillis: millis().describe("Mean time of a token after the first."),
  })
  .refine(({ ttftMillis, tpotMillis }) => (ttftMillis ?? tpotMillis) !== undefined, {
    message: "ttftMillis or tpotMillis",
  });

const classOf = (what: string) =>
  z
    .record(z.string().min(1).max(256), z.string().min(1).max(128))
    .refine((all) => Object.keys(all).length <= NAMES_MAX, { message: `at most ${NAMES_MAX} names` })
    .default({})
    .describe(`Class of requests that name none, by ${what}.`);

export const slo = z
  .strictObject({
    classes: z
      .record(z.string().max(128), target)
      .refine((all) => Object.keys(all).length <= CLASSES_MAX, { message: `at most ${CLASSES_MAX} classes` })
      .default({})
      .describe(
        "Targets by service class: {interactive: {ttftMillis: 500, tpotMillis: 50}}; * is for classes not named here and for requests without one. A request's own headers take precedence.",
      ),
    tenants: classOf("the tenant that their API key is bound to"),
    models: classOf("model, if their tenant has none"),
  })
  .superRefine(({ classes, tenants, models }, context) => {
    for (const [section, names] of Object.entries({ tenants, models }))
      for (const [name, sloClass] of Object.entries(names))
        if (!Object.hasOwn(classes, sloClass))
          context.addIssue({ code: "custom", path: [section, name], message: "one of the classes" });
  });
