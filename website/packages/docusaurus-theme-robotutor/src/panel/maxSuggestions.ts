/** The most questions that an empty panel offers. */
export const MAX_SUGGESTIONS = 4;
