/** What was asked is wrong. */
export const EXIT_USAGE = 2;

/** It could not be done. */
export const EXIT_FAILURE = 1;
