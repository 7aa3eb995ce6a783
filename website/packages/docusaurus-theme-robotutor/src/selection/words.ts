import {translate} from '@docusaurus/Translate';

/** The label of the control next to selected text. */
export const askAboutThis = (): string =>
  translate({id: 'theme.robotutor.selection.ask', message: 'Ask about this'});
