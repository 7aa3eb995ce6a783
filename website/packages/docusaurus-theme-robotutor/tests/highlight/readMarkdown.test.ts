// @vitest-environment jsdom
import {describe, expect, it} from 'vitest';

import {readMarkdown} from '../../src/highlight/readMarkdown';

describe('the letters of Markdown', () => {
  it.each([
    ['emphasis and marks', '**Keep** the _knees_ \\*bent\\*.', 'keepthekneesbent'],
    ['a link without its address', '[Next](/docs/next "Title") and [more][ref]', 'nextandmore'],
    ['an image as its description', '![A robot](img/robot.png)', 'arobot'],
    ['tags left out, code kept', 'Use <kbd>x</kbd> in `<link name="a">`', 'usexinlinknamea'],
    ['a formula as TeX', 'Then $\\frac{z_c}{g}$ and $$a<b>c$$', 'thenfraczcgandabc'],
    ['entities as characters', 'a &lt;b&gt; &amp; &eacute;', 'abe'],
    ['no numbers of items', '1. first\n2. second\n- [x] third', 'firstsecondthird'],
    ['no fence and no title of code', '```python title="a.py"\nx = 1\n```', 'x1'],
    ['no source of a diagram', 'Before\n\n```mermaid\ngraph TD\n```\n\nAfter', 'beforeafter'],
    ['no reference to a footnote', 'Text[^1] more', 'textmore'],
    ['the title of an admonition', ':::tip[Short steps]\nWalk.\n:::', 'shortstepswalk'],
    ['no id of a heading', '## Walking {#walk}', 'walking'],
    ['no accents and no case', 'Café ﬁve Σ ς', 'cafefiveσσ'],
    ['a code block that is cut off', '```text\nopen', 'open'],
  ])('have %s', (_, markdown, letters) => {
    expect(readMarkdown(markdown).join('')).toBe(letters);
  });
});
