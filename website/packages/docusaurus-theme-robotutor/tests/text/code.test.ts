import {describe, expect, it} from 'vitest';
import {writeFullLinks} from '../../src/text/code';

describe('writeFullLinks', () => {
  it('makes the links of the text absolute', () => {
    const text = 'See [a](/docs/a#x), [b](https://b.example) and ![c](/img/c.png).';
    expect(writeFullLinks(text, 'https://me.example')).toBe(
      'See [a](https://me.example/docs/a#x), [b](https://b.example) and ' +
        '![c](https://me.example/img/c.png).',
    );
  });

  it('leaves code and links to other hosts as they are', () => {
    const text = [
      'Write `[a](/docs/a)`.',
      '',
      '````md',
      '```',
      '[a](/docs/a)',
      '````',
      '',
      '- ~~~',
      '  [a](/docs/a)',
      '  ~~~',
      '[b](//b.example/x)',
    ].join('\n');
    expect(writeFullLinks(text, 'https://me.example')).toBe(text);
  });

  it('changes links again after a code block', () => {
    expect(writeFullLinks('```\nx\n```\n[a](/a)', 'https://me.example')).toBe(
      '```\nx\n```\n[a](https://me.example/a)',
    );
  });
});
