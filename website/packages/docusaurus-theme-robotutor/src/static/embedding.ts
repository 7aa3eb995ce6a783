/** Vectors of questions, computed by the embedding model. */

import type {TermReader} from './terms';
import type {Pieces, Tokenizer} from './wordPieces';

/** The vectors of a question. */
export interface QuestionVectors {
  dense: Float32Array;
  /** The vectors of its pieces, without stop words and punctuation. */
  tokens: Float32Array[];
  /** The place of each of these pieces in the question. */
  spans: [start: number, end: number][];
}

/** Runs the model: returns one vector for each piece, one after the other. */
export type Infer = (ids: readonly number[]) => Promise<Float32Array>;

/**
 * Returns the vectors of a question.
 *
 * @param formWords The places of words that are not compared with the groups of words.
 */
export async function embedQuestion(
  text: string,
  formWords: readonly (readonly [number, number])[],
  tokenizer: Tokenizer,
  terms: TermReader,
  infer: Infer,
): Promise<QuestionVectors> {
  const pieces = tokenizer.split(text);
  const vectors = await infer(pieces.ids);
  const dim = vectors.length / pieces.ids.length;
  const rows = pieces.ids.map((_, row) => vectors.subarray(row * dim, (row + 1) * dim));
  const mean = new Float64Array(dim);
  for (const row of rows) {
    row.forEach((value, column) => {
      mean[column]! += value / rows.length;
    });
  }
  const dense = normalize(mean);
  const written = listWritten(pieces);
  if (written.length === 0) {
    return {dense, tokens: [dense], spans: []};
  }
  const words = terms
    .findContentWords(text)
    .filter(({start}) => !formWords.some(([first, last]) => first <= start && start < last));
  const content = written.filter((row) =>
    words.some(({start, end}) => pieces.starts[row]! < end && pieces.ends[row]! > start),
  );
  const kept = content.length > 0 ? content : written;
  return {
    dense,
    tokens: kept.map((row) => normalize(rows[row]!)),
    spans: kept.map((row) => [pieces.starts[row]!, pieces.ends[row]!]),
  };
}

const listWritten = ({ids, starts, ends}: Pieces): number[] =>
  ids.map((_, row) => row).filter((row) => starts[row]! < ends[row]!);

function normalize(vector: ArrayLike<number>): Float32Array {
  let squares = 0;
  for (let column = 0; column < vector.length; column += 1) {
    squares += vector[column]! ** 2;
  }
  const length = Math.sqrt(squares) || 1;
  return Float32Array.from(vector, (value) => value / length);
}
