import {describe, expect, it} from 'vitest';
import {writeMarkdown} from '../../src/answer/copyAnswer';
import {makeSource, makeTurn, readTurn} from './turns';

const ORIGIN = 'https://example.org';

describe('writeMarkdown', () => {
  it('writes a generated answer with the full addresses of the cited sources', () => {
    const turn = makeTurn({
      kind: 'generated',
      text: 'It falls [1]. See [more](/book/x) and `[a](/b)`.',
      sources: [makeSource(), makeSource({number: 2})],
    });
    expect(writeMarkdown(turn, ORIGIN)).toBe(
      '**Why does a robot fall?**\n\n' +
        'It falls [1]. See [more](https://example.org/book/x) and `[a](/b)`.\n\n' +
        '1. [Balance › Falling](https://example.org/book/docs/balance#falling)\n',
    );
  });

  it('names a version and a language that readers do not get by default', () => {
    const turn = makeTurn({
      kind: 'generated',
      text: 'It falls [1][2].',
      sources: [
        makeSource({version: '2.0.x', locale: 'fr'}),
        makeSource({number: 2, version: '1.0', title: 'Falling'}),
      ],
    });
    expect(writeMarkdown(turn, ORIGIN)).toContain('1. [Balance › Falling (2.0.x, fr)](');
    expect(writeMarkdown(turn, ORIGIN)).toContain('2. [Falling (1.0)](');
  });

  it('writes a quoted answer as quotations with their places', () => {
    const text = writeMarkdown(readTurn('formula'), ORIGIN);
    expect(text).toContain('\n> The ZMP is the point on the ground');
    expect(text).toContain('\n> $$\n> p_x=x');
    expect(text).toContain(
      '— [Balance, ZMP and Capture Point › The zero moment point](https://example.org/physical-ai',
    );
    expect(text).not.toMatch(/\]\(\//);
  });
});
