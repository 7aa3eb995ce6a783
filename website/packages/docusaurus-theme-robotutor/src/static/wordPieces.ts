/** The tokenizer of the embedding model: BERT's normalization and word pieces. */

/** The word pieces of a text, with the place of each in the text; empty places are special. */
export interface Pieces {
  ids: number[];
  starts: number[];
  ends: number[];
}

/** Word pieces that the model reads, including the two special ones. */
const MAX_PIECES = 256;
const MAX_WORD_CHARS = 100;
const CHINESE = new RegExp(
  '[\u4e00-\u9fff\u3400-\u4dbf\uf900-\ufaff\u{20000}-\u{2a6df}\u{2a700}-\u{2b73f}' +
    '\u{2b740}-\u{2b81f}\u{2b820}-\u{2ceaf}\u{2f800}-\u{2fa1f}]',
  'u',
);
const PUNCTUATION = /[!-/:-@[-`{-~]|\p{P}/u;

interface Letter {
  text: string;
  start: number;
  end: number;
}

/** Splits texts into the word pieces of a vocabulary. */
export class Tokenizer {
  private readonly ids: ReadonlyMap<string, number>;

  /** Takes the pieces of the vocabulary in the order of their ids. */
  constructor(vocabulary: readonly string[]) {
    this.ids = new Map(vocabulary.map((piece, id) => [piece, id]));
  }

  /** Returns the pieces of a text between the two special ones. What is too long is left out. */
  split(text: string): Pieces {
    const pieces: Pieces = {ids: [], starts: [], ends: []};
    const add = (id: number, start: number, end: number): void => {
      pieces.ids.push(id);
      pieces.starts.push(start);
      pieces.ends.push(end);
    };
    add(this.find('[CLS]'), 0, 0);
    for (const word of splitWords(text)) {
      for (const [id, start, end] of this.splitWord(word)) {
        if (pieces.ids.length < MAX_PIECES - 1) {
          add(id, start, end);
        }
      }
    }
    add(this.find('[SEP]'), 0, 0);
    return pieces;
  }

  private find(piece: string): number {
    return this.ids.get(piece) ?? 0;
  }

  private splitWord(word: readonly Letter[]): [number, number, number][] {
    const unknown = (): [number, number, number][] => [
      [this.find('[UNK]'), word[0]!.start, word[word.length - 1]!.end],
    ];
    if (word.length > MAX_WORD_CHARS) {
      return unknown();
    }
    const found: [number, number, number][] = [];
    for (let at = 0; at < word.length; ) {
      let end = word.length;
      let id: number | undefined;
      for (; end > at; end -= 1) {
        const piece = word.slice(at, end).map((letter) => letter.text).join('');
        id = this.ids.get(at > 0 ? `##${piece}` : piece);
        if (id !== undefined) {
          break;
        }
      }
      if (id === undefined) {
        return unknown();
      }
      found.push([id, word[at]!.start, word[end - 1]!.end]);
      at = end;
    }
    return found;
  }
}

/** Returns the words and punctuation marks of a text, in lower case and without accents. */
function splitWords(text: string): Letter[][] {
  const words: Letter[][] = [];
  let word: Letter[] = [];
  const endWord = (): void => {
    if (word.length > 0) {
      words.push(word);
      word = [];
    }
  };
  let start = 0;
  for (const char of text) {
    const end = start + char.length;
    if (/[\t\n\r]|\p{White_Space}/u.test(char)) {
      endWord();
    } else if (char !== '\ufffd' && !/\p{C}/u.test(char)) {
      const isAlone = CHINESE.test(char);
      const kept = [...char.normalize('NFD').replace(/\p{Mn}/gu, '').toLowerCase()];
      for (const letter of kept) {
        const stands = isAlone || PUNCTUATION.test(letter);
        if (stands) {
          endWord();
        }
        word.push({text: letter, start, end});
        if (stands) {
          endWord();
        }
      }
    }
    start = end;
  }
  endWord();
  return words;
}
