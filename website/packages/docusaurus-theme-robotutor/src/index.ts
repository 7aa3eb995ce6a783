/** A Docusaurus theme that adds a panel which answers questions about the site. */

import type {LoadContext, Plugin} from '@docusaurus/types';
import type {CheckedOptions} from './options';

export {validateOptions} from './options';
export type {Options} from './options';

/** Adds the panel to the site, unless the option `enabled` is false. */
export default function themeRoboTutor(_context: LoadContext, options: CheckedOptions): Plugin {
  const {id: _id, enabled, ...settings} = options;
  const name = 'docusaurus-theme-robotutor';
  if (!enabled) {
    return {name};
  }
  return {
    name,
    getThemePath: () => './theme',
    getTypeScriptThemePath: () => '../src/theme',
    // `docusaurus write-translations` looks for texts in these files.
    getPathsToWatch: () => ['./**/*.js'],
    contentLoaded: ({actions}) => actions.setGlobalData(settings),
  };
}
