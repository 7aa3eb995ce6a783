import {describe, expect, it} from 'vitest';
import {dropHeading, readPlainText, shorten} from '../../src/answer/plainText';

describe('readPlainText', () => {
  it.each([
    ['A **bold** [link](/a "b") and `code_x`.', 'A bold link and code_x.'],
    ['## Title\n\n> quote\n> more', 'Title quote more'],
    ['| a | b |\n| - | - |\n| 1 | 2 |', 'a b 1 2'],
    ['```py title="x"\nprint(1)\n```', 'print(1)'],
    ['Height $z_c$ is\n\n$$\nx=\\frac{1}{2}\n$$\n\nand $\\ddot x$.', 'Height z_c is … and ….'],
    ['A cut formula $$\nx=', 'A cut formula …'],
    ['From $5 to $7, \\*not\\* snake_case_name', 'From $5 to $7, *not* snake_case_name'],
  ])('reads %j', (markdown, words) => {
    expect(readPlainText(markdown)).toBe(words);
  });
});

describe('dropHeading', () => {
  it('removes only the first heading', () => {
    expect(dropHeading('### A\n\ntext\n\n### B')).toBe('text\n\n### B');
    expect(dropHeading('#tag stays')).toBe('#tag stays');
  });
});

describe('shorten', () => {
  it('cuts between words, and inside a word that is too long', () => {
    expect(shorten('one two three', 9)).toBe('one two …');
    expect(shorten('a'.repeat(50), 10)).toBe(`${'a'.repeat(10)} …`);
    expect(shorten('short', 10)).toBe('short');
  });
});
