import fc from 'fast-check';
import {describe, expect, it} from 'vitest';
import {excerptOf} from '../../src/answer/excerpt';

describe('an excerpt', () => {
  it.each([
    ['Short $z_c$ text.', 'Short $z_c$ text.'],
    ['A paragraph.\n\nAnother one.', 'A paragraph. …'],
    ['| a | b |\n| - | - |\n| 1 | 2 |', 'a · b; 1 · 2'],
    ['| a | $z_c$ |\n| - | :-: |\n| 1 \\| 2 |  |', 'a · z\\_c; 1 2'],
    ['```py\nx = 1\n```', '`x = 1`'],
    ['```py\nimport a\n\nx = 1\ny = 2\n```', '`import a` `x = 1` …'],
    ['```sh\necho `date`\n```', 'echo date'],
  ])('of %j is %j', (markdown, excerpt) => {
    expect(excerptOf(markdown, 60)).toBe(excerpt);
  });

  it('never cuts a formula, a link, code or bold text', () => {
    const text = 'We see $p_x = x - \\frac{z_c}{g} \\ddot x$ and [a long link](/docs/a/b/c) and `some code here` **bold words here** and more words after that which are long.';
    for (let limit = 20; limit < text.length; limit += 1) {
      const cut = excerptOf(text, limit).replace(/ …$/, '');
      expect((cut.match(/(?<!\\)\$/g) ?? []).length % 2).toBe(0);
      expect((cut.match(/(?<!\\)`/g) ?? []).length % 2).toBe(0);
      expect((cut.match(/\*\*/g) ?? []).length % 2).toBe(0);
      expect(cut).not.toMatch(/\]\([^)]*$/);
    }
  });

  it('is never much longer than its limit', () => {
    fc.assert(
      fc.property(fc.string({maxLength: 400, unit: 'grapheme-ascii'}), (text) => {
        expect(excerptOf(text, 50).length).toBeLessThan(160);
      }),
    );
  });
});
