// @vitest-environment jsdom
import {afterEach, describe, expect, it, vi} from 'vitest';
import {copyAnswer, writeMarkdown} from '../../src/answer/copyAnswer';
import {makeSource, makeTurn, readTurn} from './turns';

const ORIGIN = 'https://example.org';

function setClipboard(writeText: unknown): void {
  Object.defineProperty(navigator, 'clipboard', {value: {writeText}, configurable: true});
}

afterEach(() => {
  Object.defineProperty(navigator, 'clipboard', {value: undefined, configurable: true});
  Reflect.deleteProperty(document, 'execCommand');
});

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

describe('copyAnswer', () => {
  const turn = makeTurn({text: 'Text.'});

  it('writes to the clipboard', async () => {
    const writeText = vi.fn(() => Promise.resolve());
    setClipboard(writeText);
    expect(await copyAnswer(turn, ORIGIN)).toBe(true);
    expect(writeText).toHaveBeenCalledWith('**Why does a robot fall?**\n\nText.\n');
  });

  it('selects the text and copies it if the clipboard is refused, and puts the focus back', async () => {
    setClipboard(() => Promise.reject(new Error('refused')));
    const button = document.createElement('button');
    document.body.append(button);
    button.focus();
    let copied = '';
    document.execCommand = () => {
      copied = document.querySelector('textarea')!.value;
      return true;
    };
    expect(await copyAnswer(turn, ORIGIN)).toBe(true);
    expect(copied).toContain('Text.');
    expect(document.querySelector('textarea')).toBeNull();
    expect(document.activeElement).toBe(button);
  });

  it('returns false if no way works', async () => {
    expect(await copyAnswer(turn, ORIGIN)).toBe(false);
    expect(document.querySelector('textarea')).toBeNull();
  });
});
