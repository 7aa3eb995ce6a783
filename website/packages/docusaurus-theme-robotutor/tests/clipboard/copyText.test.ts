// @vitest-environment jsdom
import {afterEach, describe, expect, it, vi} from 'vitest';
import {copyText} from '../../src/clipboard/copyText';

function setClipboard(writeText: unknown): void {
  Object.defineProperty(navigator, 'clipboard', {value: {writeText}, configurable: true});
}

afterEach(() => {
  Object.defineProperty(navigator, 'clipboard', {value: undefined, configurable: true});
  Reflect.deleteProperty(document, 'execCommand');
});

describe('copyText', () => {
  it('writes to the clipboard', async () => {
    const writeText = vi.fn(() => Promise.resolve());
    setClipboard(writeText);
    expect(await copyText('Text.')).toBe(true);
    expect(writeText).toHaveBeenCalledWith('Text.');
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
    expect(await copyText('Text.')).toBe(true);
    expect(copied).toContain('Text.');
    expect(document.querySelector('textarea')).toBeNull();
    expect(document.activeElement).toBe(button);
  });

  it('returns false if no way works', async () => {
    expect(await copyText('Text.')).toBe(false);
    expect(document.querySelector('textarea')).toBeNull();
  });

  it('rejects if the text cannot be loaded', async () => {
    setClipboard(async () => undefined);
    await expect(copyText(Promise.reject(new Error('missing')))).rejects.toThrow('missing');
  });
});
