import fc from 'fast-check';
import {describe, expect, it} from 'vitest';
import {joinBlocks, splitBlocks} from '../../src/answer/blocks';
import {calmEnd} from '../../src/answer/unfinished';

const texts = (source: string): string[] => splitBlocks(source).map(({text}) => text);

describe('splitBlocks', () => {
  it('splits at blank lines', () => {
    expect(texts('a\nb\n\nc\n')).toEqual(['a\nb\n\n', 'c\n']);
  });

  it.each([
    '```py\na\n\nb\n```',
    '~~~\n```\n\nb\n~~~',
    '$$\na\n\nb\n$$',
    '1. a\n\n   ```\n   x\n\n   y\n   ```\n\n2. b',
    '- a\n\n- b\n\n  more',
  ])('keeps a block whole: %j', (source) => {
    expect(texts(source)).toEqual([source]);
  });

  it('ends a fence only with a fence of its kind', () => {
    expect(texts('````\n```\n\na\n````\n\nb')).toHaveLength(2);
  });

  it('loses nothing', () => {
    const piece = fc.constantFrom('a', '\n', '\n\n', '```', '~~~', '$$', '- ', '  ', '> ', '1. ');
    fc.assert(
      fc.property(fc.array(piece, {maxLength: 40}), (pieces) => {
        const source = pieces.join('');
        expect(texts(source).join('')).toBe(source);
        for (const {start, text} of splitBlocks(source)) {
          expect(source.slice(start, start + text.length)).toBe(text);
        }
      }),
    );
  });
});

describe('joinBlocks', () => {
  it('keeps finished blocks while text is added', () => {
    const paragraph = 'Ten words.\n\n';
    const join = (count: number) => joinBlocks(splitBlocks(paragraph.repeat(count)), 40);
    const short = join(10);
    expect(short.map(({text}) => text).join('')).toBe(paragraph.repeat(10));
    expect(short.length).toBeLessThan(10);
    expect(join(30).slice(0, short.length - 1)).toEqual(short.slice(0, -1));
  });
});

describe('calmEnd', () => {
  it.each([
    ['It **moves', 'It **moves**'],
    ['It **', 'It '],
    ['It **moves*', 'It **moves**'],
    ['Run `ls -', 'Run `ls -`'],
    ['Run `', 'Run '],
    ['As said [1', 'As said '],
    ['See [the page](/docs/a', 'See '],
    ['See [the page](/docs/a)', 'See [the page](/docs/a)'],
    ['Mass $m_', 'Mass '],
    ['Costs $5 and', 'Costs $5 and'],
    ['So\n$$\nx = ', 'So\n'],
    ['Text\n```', 'Text\n'],
    ['```py', ''],
    ['```py\na\n``', '```py\na\n'],
    ['```py\na **b', '```py\na **b'],
    ['| a | b', ''],
    ['| a | b |\n| -', ''],
    ['| a | b |\n| - | - |\n| 1', '| a | b |\n| - | - |\n| 1'],
    ['Plain text.', 'Plain text.'],
    ['Arrays `a[', 'Arrays `a[`'],
  ])('shows %j as %j', (source, shown) => {
    expect(calmEnd(source)).toBe(shown);
  });

  it('never shows a text that was not written', () => {
    const piece = fc.constantFrom('a ', '\n', '**', '`', '```', '$', '$$', '[', '](', ')', '|', '\\(');
    fc.assert(
      fc.property(fc.array(piece, {maxLength: 30}), (pieces) => {
        const source = pieces.join('');
        const shown = calmEnd(source).replace(/(\*\*|`)$/, '');
        expect(source.startsWith(shown.trimEnd())).toBe(true);
      }),
    );
  });
});
