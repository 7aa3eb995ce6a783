import {translate} from '@docusaurus/Translate';

/** The words of the button that copies a page. */
export interface CopyPageWords {
  copy: string;
  copied: string;
  failed: string;
  open: string;
  missing: string;
}

/** Returns the words of the button that copies a page, in the language of the site. */
export const copyPageWords = (): CopyPageWords => ({
  copy: translate({
    id: 'theme.robotutor.copyPage.copy',
    message: 'Copy page as Markdown',
    description: 'The button that copies the page as Markdown text',
  }),
  copied: translate({
    id: 'theme.robotutor.copyPage.copied',
    message: 'Copied',
    description: 'The status after the page was copied',
  }),
  failed: translate({
    id: 'theme.robotutor.copyPage.failed',
    message: 'Your browser did not allow copying.',
    description: 'The status if the browser refuses access to the clipboard',
  }),
  open: translate({
    id: 'theme.robotutor.copyPage.open',
    message: 'Open the Markdown file',
    description: 'The link to the Markdown file of the page, shown if copying failed',
  }),
  missing: translate({
    id: 'theme.robotutor.copyPage.missing',
    message: 'This page is not available as Markdown.',
    description: 'The status if the site has no Markdown file of the page',
  }),
});
