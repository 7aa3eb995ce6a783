import {describe, expect, it} from 'vitest';
import {readHeadings} from '../../src/manifest/headings';

const page = (text: string): string => `<!doctype html><html><body>
  <nav><h2 id="menu">Menu</h2></nav>
  <article><div class="theme-doc-markdown markdown">${text}</div></article>
  <aside><h2 id="beside">Beside</h2></aside></body></html>`;

const link = (id: string): string =>
  `<a href="#${id}" class="hash-link" aria-label="Direct link" title="Direct link">\u200b</a>`;

describe('the headings of a page', () => {
  it('are those of its text, in their order', () => {
    const html = page(
      `<header><h1>Robots</h1></header><p>Text.</p>
       <h2 class="anchor" id="arms">Arms ${link('arms')}</h2>
       <details><h4 id="gear-1">Gears &amp; belts${link('gear-1')}</h4></details>`,
    );
    expect(readHeadings(html)).toEqual([
      {level: 1, id: null, text: 'Robots'},
      {level: 2, id: 'arms', text: 'Arms'},
      {level: 4, id: 'gear-1', text: 'Gears & belts'},
    ]);
  });

  it('keep the words of code and links', () => {
    const html = page(`<h3 id="x">The <code>ros2\n run</code> <a href="/a">command</a></h3>`);
    expect(readHeadings(html)).toEqual([{level: 3, id: 'x', text: 'The ros2 run command'}]);
  });

  it('are found in a page without the usual class', () => {
    expect(readHeadings('<h2 id="a">A</h2>')).toEqual([{level: 2, id: 'a', text: 'A'}]);
  });

  it('begin with the title that stands above the text of a blog post', () => {
    const html = `<article><header><h1 class="title">News</h1></header>
      <div class="markdown"><h2 id="a">A</h2></div></article><footer><h1>Site</h1></footer>`;
    expect(readHeadings(html)).toEqual([
      {level: 1, id: null, text: 'News'},
      {level: 2, id: 'a', text: 'A'},
    ]);
  });

  it('can be missing', () => {
    expect(readHeadings(page('<p>Text.</p>'))).toEqual([]);
    expect(readHeadings('')).toEqual([]);
  });
});
