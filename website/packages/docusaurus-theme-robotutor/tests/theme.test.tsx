// @vitest-environment jsdom
import {renderToString} from 'react-dom/server';
import {expect, it} from 'vitest';
import DocBreadcrumbs from '../src/theme/DocBreadcrumbs';
import {globalData} from './docusaurus/globalData';

const NAME = 'docusaurus-theme-robotutor';

it.each([true, false])('a page has the button that copies it: %s, as the option says', (copyPage) => {
  const before = globalData[NAME];
  globalData[NAME] = {...(before as object), copyPage};
  try {
    const page = renderToString(<DocBreadcrumbs />);
    expect(page.includes('Copy page as Markdown')).toBe(copyPage);
    expect(page).toContain('breadcrumbs of the site');
  } finally {
    globalData[NAME] = before;
  }
});
