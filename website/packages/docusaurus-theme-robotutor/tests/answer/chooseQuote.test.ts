import {describe, expect, it} from 'vitest';
import {chooseQuote, splitSentences, toTextOffsets} from '../../src/answer/chooseQuote';
import {makeSource, makeTurn, readTurn, recordedNames} from './turns';

const TEXT =
  '## Falling\n\nRobots have feet. The zero moment point leaves the foot before a robot falls. ' +
  'Batteries are heavy. See $x$ below.';

const generated = makeTurn({kind: 'generated', sources: [makeSource({text: TEXT})]});

describe('chooseQuote of a written answer', () => {
  it('returns the sentence of the source that agrees with the citing sentence', () => {
    const cited = 'A robot falls once the zero-moment point is outside its foot.';
    expect(chooseQuote(generated, 1, cited)).toBe(
      'The zero moment point leaves the foot before a robot falls.',
    );
  });

  it('returns the whole text without its heading if no sentence agrees', () => {
    const whole = TEXT.replace('## Falling\n\n', '');
    expect(chooseQuote(generated, 1, 'Nothing alike here.')).toBe(whole);
    expect(chooseQuote(generated, 1)).toBe(whole);
  });

  it('returns nothing for a source that does not exist', () => {
    expect(chooseQuote(generated, 9, 'Robots have feet.')).toBe('');
  });

  it('compares languages without spaces between words', () => {
    const text = '机器人有脚。零力矩点离开脚时机器人会跌倒。电池很重。';
    const turn = makeTurn({kind: 'generated', sources: [makeSource({text})]});
    expect(chooseQuote(turn, 1, '当零力矩点离开脚，机器人跌倒')).toBe('零力矩点离开脚时机器人会跌倒。');
  });
});

describe('chooseQuote of a quoted answer', () => {
  it.each(recordedNames)('returns words of the passage for %s', (name) => {
    const turn = readTurn(name);
    for (const {number, text, highlights} of turn.passages) {
      const quotes = chooseQuote(turn, number).split('\n\n');
      for (const quote of highlights.length > 0 ? quotes : []) {
        expect(text).toContain(quote);
      }
      expect(chooseQuote(turn, number).length).toBeGreaterThan(10);
    }
  });

  it('returns the sentence that the service marked', () => {
    expect(chooseQuote(readTurn('typo'), 1)).toMatch(/^The ZMP is the point .* component\.$/);
  });
});

describe('toTextOffsets', () => {
  it('counts an emoji as one character, as the service does', () => {
    const text = '🤖🤖 walks far';
    const [span] = toTextOffsets(text, [[3, 8]]);
    expect(text.slice(...span!)).toBe('walks');
  });

  it('leaves out pairs that do not fit', () => {
    expect(toTextOffsets('abc', [[2, 1], [-1, 2], [5, 9], [1, 99]])).toEqual([[1, 3]]);
  });
});

describe('splitSentences', () => {
  it('splits sentences, list items and paragraphs, but not numbers and abbreviations', () => {
    const text = 'One is 1.5 m, e.g. here. Two\n\n- Three\n- Four! 5. Five';
    const found = splitSentences(text).map(([start, end]) => text.slice(start, end).trim());
    expect(found).toEqual(['One is 1.5 m, e.g. here.', 'Two', '- Three', '- Four!', '5. Five']);
  });
});
