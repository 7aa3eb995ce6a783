/** Letters and digits, by which a text of the book is found in the page that shows it. */

const OTHERS = /[^\p{L}\p{N}]+/gu;
const ASCII = /^[\0-\x7f]*$/;

/**
 * Returns the letters and digits of a text in lower case, without accents.
 *
 * White space, punctuation and marks differ between Markdown and the page. Compatible characters,
 * such as `ﬁ` and `fi`, become equal. The result of a text is the sum of the results of its
 * characters, so that a place in the result belongs to a character.
 */
export const toLetters = (text: string): string =>
  (ASCII.test(text) ? text : text.normalize('NFKD'))
    .replace(OTHERS, '')
    .toLowerCase()
    .replaceAll('ς', 'σ');

/** Returns the start and end of the character of `text` that gives the letter number `letter`. */
export function placeOfLetter(text: string, letter: number): [start: number, end: number] {
  let start = 0;
  let letters = 0;
  for (const character of text) {
    letters += toLetters(character).length;
    if (letters > letter) return [start, start + character.length];
    start += character.length;
  }
  return [text.length, text.length];
}
