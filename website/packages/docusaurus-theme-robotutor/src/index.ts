/** A Docusaurus theme that adds a panel which answers questions about the site. */

import type {LoadContext, Plugin} from '@docusaurus/types';
import {listPages, listSubjects, type LoadedPage} from './manifest/pages';
import {writeManifest} from './manifest/writeManifest';
import type {CheckedOptions} from './options';

export {validateOptions} from './options';
export type {Options} from './options';

/**
 * Adds the panel to the site, unless the option `enabled` is false, and lists the site's pages in
 * `rag-manifest.json`, unless `manifest` is false.
 */
export default function themeRoboTutor(_context: LoadContext, options: CheckedOptions): Plugin {
  const {id: _id, enabled, manifest, ...settings} = options;
  let pages: LoadedPage[] = [];
  return {
    name: 'docusaurus-theme-robotutor',
    ...(enabled && {
      getThemePath: () => './theme',
      getTypeScriptThemePath: () => '../src/theme',
      // `docusaurus write-translations` looks for texts in these files.
      getPathsToWatch: () => ['./**/*.js'],
    }),
    ...((enabled || manifest) && {
      allContentLoaded: async ({allContent, actions}) => {
        pages = listPages(allContent);
        if (enabled) {
          actions.setGlobalData({...settings, subjects: listSubjects(pages)});
        }
      },
    }),
    ...(manifest && {
      postBuild: (props) => writeManifest(pages, props),
    }),
  };
}
