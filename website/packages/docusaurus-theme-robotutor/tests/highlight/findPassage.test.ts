// @vitest-environment jsdom
import fc from 'fast-check';
import {describe, expect, it} from 'vitest';

import {findPassage} from '../../src/highlight/findPassage';
import {placeOfLetter, toLetters} from '../../src/highlight/letters';
import {openPage, showArticle} from '../selection/page';

const article = (html: string): Element =>
  showArticle(`<div class="theme-doc-markdown markdown">${html}</div>`);

/** Returns the text of the ranges without the second form of each formula. */
const textOf = (ranges: Range[] | null): string[] | undefined =>
  ranges?.map((range) => {
    const copy = range.cloneContents();
    copy.querySelectorAll('.katex-html, mrow, .hash-link').forEach((node) => node.remove());
    return (copy.textContent ?? '').replace(/\s+/g, ' ');
  });

describe('a passage is found', () => {
  it('with its formulas', () => {
    const text = 'With the CoM at constant height $z_c$ and no change of angular momentum,';
    expect(textOf(findPassage(openPage('formulas'), text))).toEqual([
      'With the CoM at constant height z_c and no change of angular momentum,',
    ]);
  });

  it('as a displayed formula alone', () => {
    const text = '$$\np_x=x-\\frac{z_c}{g}\\,\\ddot x,\\qquad p_y=y-\\frac{z_c}{g}\\,\\ddot y\n$$';
    const [range] = findPassage(openPage('formulas'), text) ?? [];
    expect(range?.cloneContents().querySelector('.katex-html')).not.toBeNull();
  });

  it('as code with a title', () => {
    const text = "```python title=\"setup.py (excerpt)\"\nentry_points = {\n    'console_scripts': [\n```";
    expect(textOf(findPassage(openPage('code-with-title'), text))).toEqual([
      "entry_points = { 'console_scripts': [",
    ]);
  });

  it('as rows of a table', () => {
    const text = '| Type | Motion |\n|---|---|\n| `revolute` | Turn about an axis |';
    const page = article(
      '<table><thead><tr><th>Type</th><th>Motion</th></tr></thead><tbody><tr><td><code>revolute</code></td><td>Turn about an axis</td></tr></tbody></table>',
    );
    expect(textOf(findPassage(page, text))).toEqual(['TypeMotionrevoluteTurn about an axis']);
  });

  it('as an admonition with its title', () => {
    const text = 'Fixed joints vanish in the conversion\n\nWhen Gazebo converts URDF, it merges links';
    expect(textOf(findPassage(openPage('admonition'), text))?.[0]).toMatch(/^Fixed joints.*links$/);
  });

  it('in a tab that is not open, with and without its name', () => {
    const page = openPage('tabs');
    const panel = page.querySelectorAll('[role="tabpanel"]')[1] as Element;
    for (const text of [
      'Rotate the trunk forward quickly when pushed forward',
      'Hip\n\nRotate the trunk forward quickly when pushed forward',
    ]) {
      const ranges = findPassage(page, text);
      expect(textOf(ranges)).toEqual(['Rotate the trunk forward quickly when pushed forward']);
      expect(panel.contains(ranges?.[0]?.startContainer ?? null)).toBe(true);
    }
  });

  it('in closed details', () => {
    const text = '$T=60/120=0.50$ s and $v=0.25/0.50=0.50$ m/s. A stride';
    expect(findPassage(openPage('details'), text)).not.toBeNull();
  });

  it('in the section of the anchor if it occurs twice', () => {
    const page = openPage('repeated-headings');
    const last = page.lastElementChild as Element;
    const text = 'Keep the knees bent.';
    const found = (anchor: string): boolean =>
      last.contains(findPassage(page, text, anchor)?.[0]?.startContainer ?? null);
    expect(found('hints-1')).toBe(true);
    expect(found('hints')).toBe(false);
    expect(found('a-removed-heading')).toBe(false);
  });

  it('although the page shows something between its lines', () => {
    const page = article(
      '<h1>Syllabus</h1><aside>After this page you can plan</aside><p>Sixteen weeks of work.</p>',
    );
    expect(textOf(findPassage(page, '# Syllabus\n\nSixteen weeks of work.'))?.join(' ')).toBe(
      'Syllabus Sixteen weeks of work.',
    );
  });

  it('although a word differs', () => {
    const page = article('<p>The robot keeps its knees slightly bent while it walks on ice.</p>');
    const ranges = findPassage(page, 'The robot keeps both knees slightly bent while it walks on ice.');
    expect(textOf(ranges)?.join(' ')).toMatch(/The robot keeps .*knees slightly bent while it walks on ice\.$/);
  });
});

describe('a passage is not found', () => {
  it.each([
    ['if most of it is missing', 'The robot keeps its knees bent, and nothing else is written here at all.'],
    ['inside of a word', 'one'],
    ['if it has no letters', '---'],
  ])('%s', (_, text) => {
    const page = article('<p>The robot keeps its knees bent. Nobody is alone with a phone.</p>');
    expect(findPassage(page, text)).toBeNull();
  });
});

describe('letters', () => {
  it('of a text are those of its characters', () => {
    fc.assert(
      fc.property(fc.string({unit: 'binary'}), (text) => {
        expect(toLetters(text)).toBe(Array.from(text, toLetters).join(''));
      }),
    );
  }, 60_000);

  it('are at their places', () => {
    fc.assert(
      fc.property(fc.string({unit: 'grapheme'}), (text) => {
        const letters = toLetters(text);
        for (let at = 0; at < letters.length; at += 1) {
          const [start, end] = placeOfLetter(text, at);
          expect(toLetters(text.slice(start, end))).toContain(letters[at]);
        }
      }),
    );
  }, 60_000);
});
