/** Words and terms of a text, by the rules that the index was built with. */

import {stem} from './stem';

const LETTER = '\\p{L}\\p{N}';
const SYMBOL = `(?<![${LETTER}_*])[A-Za-z](?:\\*|\\+\\+|#)(?![${LETTER}_*+#])`;
const PLAIN = `[${LETTER}]+(?:_+[${LETTER}]+)*`;
/** Names with symbols, files that begin with a dot, and flags of commands. */
const NAMES = [
  `(?<![${LETTER}_*])(?:[A-Za-z]|[A-Z]{2,5})\\\\?\\*(?![${LETTER}_*])`,
  `(?<![${LETTER}_+])[A-Za-z][A-Za-z0-9]*\\+\\+(?![A-Za-z_+*#])`,
  `(?<![${LETTER}_*#])[A-Za-z]#(?![${LETTER}_*+#])`,
  `(?<![${LETTER}_.)\\]}])\\.[A-Za-z][A-Za-z0-9_]*(?:[.\\-][A-Za-z0-9_]+)*(?![${LETTER}_(])`,
  `(?:^|(?<=[\\s\`'"|\\[]))--?[A-Za-z][A-Za-z0-9_]*(?:-[A-Za-z0-9_]+)*(?![${LETTER}_])`,
];
const WORD = new RegExp([...NAMES, PLAIN].join('|'), 'gu');
/** The words of which the index's groups of words consist. */
const CONTENT_WORD = new RegExp(`${SYMBOL}|${PLAIN}`, 'gu');
const PAIRED = /[\u3005\uac00-\ud7a3\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]/;
const PAIRED_RUN = new RegExp(`(${PAIRED.source}+)`);
const PARTS = /U+(?!l)|U?l+|d+/g;
const MAX_TERM_LENGTH = 64;

/** A word with its place in a text. */
export interface Word {
  text: string;
  start: number;
  end: number;
}

/** Splits texts into terms. The stop words come from the index. */
export class TermReader {
  private readonly stopWords: ReadonlySet<string>;

  constructor(stopWords: Iterable<string>) {
    this.stopWords = new Set(stopWords);
  }

  /** Returns the terms of a text in order, with repeats and without stop words. */
  readTerms(text: string): string[] {
    return findWords(text).flatMap(({text: word}) => this.readWord(word));
  }

  /** Returns the words of a text that are not stop words, in order. */
  findContentWords(text: string): Word[] {
    return matchAll(text, CONTENT_WORD).filter(
      ({text: word}) => !this.stopWords.has(word.toLowerCase()),
    );
  }

  /** Returns the terms of one word. */
  readWord(word: string): string[] {
    if (!PAIRED.test(word)) {
      return this.readPlain(word);
    }
    return word.split(PAIRED_RUN).flatMap((run) => {
      if (!PAIRED.test(run)) {
        return run ? this.readPlain(run) : [];
      }
      const letters = [...run];
      return Array.from({length: Math.max(letters.length - 1, 1)}, (_, at) =>
        letters.slice(at, at + 2).join(''),
      );
    });
  }

  private readPlain(word: string): string[] {
    const whole = word.toLowerCase();
    if ([...whole].length > MAX_TERM_LENGTH || this.stopWords.has(whole)) {
      return [];
    }
    if (!/^[\p{L}\p{N}](?:.*[\p{L}\p{N}])?$/u.test(word)) {
      return this.readName(word);
    }
    const parts = splitParts(word).map((part) => part.toLowerCase());
    if (parts.length < 2) {
      return [stem(whole)];
    }
    // "websockets" has no parts, and must give the same term as "WebSockets".
    const term = /^\p{L}+$/u.test(word) ? stem(whole) : whole;
    return [term, ...parts.filter((part) => !this.stopWords.has(part)).map(stem)];
  }

  /** Returns the terms of a name with symbols. The letter of A* means nothing without the symbol. */
  private readName(name: string): string[] {
    const whole = name.replaceAll('\\', '').toLowerCase();
    const words = name.match(new RegExp(PLAIN, 'gu')) ?? [];
    if ([...(words[0] ?? '')].length === 1 && /^\p{L}/u.test(name)) {
      return [whole];
    }
    return [whole, ...words.flatMap((word) => this.readPlain(word))];
  }
}

/** Returns the words of a text in order. An identifier such as `use_sim_time` is one word. */
export const findWords = (text: string): Word[] => matchAll(text, WORD);

const matchAll = (text: string, pattern: RegExp): Word[] =>
  Array.from(text.matchAll(pattern), (match) => ({
    text: match[0],
    start: match.index,
    end: match.index + match[0].length,
  }));

/** Returns true if a term is written in Latin letters, digits or symbols. */
export const isLatin = (term: string): boolean =>
  [...term].every((char) => !/\p{L}/u.test(char) || /\p{Script=Latin}/u.test(char));

/** Splits an identifier at underscores, at capitals, and between letters and digits. */
function splitParts(word: string): string[] {
  const letters = [...word];
  const shape = letters
    .map((char) =>
      char === '_' ? '_' : /\p{Nd}/u.test(char) ? 'd' : /\p{Lu}/u.test(char) ? 'U' : 'l',
    )
    .join('');
  return Array.from(shape.matchAll(PARTS), ({index, 0: part}) =>
    letters.slice(index, index + part.length).join(''),
  );
}
