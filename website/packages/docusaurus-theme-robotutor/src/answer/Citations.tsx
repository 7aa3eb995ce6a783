import type {ReactNode} from 'react';
import {useLinks} from './AnswerContext';
import {CitationLink} from './CitationLink';
import type {Piece} from './citationMarks';

/** The numbers of a citation as links. It stays text if none of its sources is known. */
export function Citations({piece, sentence}: {piece: Piece; sentence: string}): ReactNode {
  const {sources} = useLinks();
  const found = piece.numbers.map((number) => sources.find((each) => each.number === number));
  if (!found.some(Boolean)) {
    return piece.text;
  }
  return piece.numbers.map((number, at) => {
    const source = found[at];
    return source ? (
      <CitationLink key={at} sentence={sentence} source={source} />
    ) : (
      <span key={at}>[{number}]</span>
    );
  });
}
