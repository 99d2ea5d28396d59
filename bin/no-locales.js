/** In place of the languages that zod has: see known-modules.js. */
export const LANGUAGES = {};
