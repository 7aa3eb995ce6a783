/** A Docusaurus theme that adds a panel which answers questions about the site. */

import {cp, writeFile} from 'node:fs/promises';
import {join} from 'node:path';
import {fileURLToPath} from 'node:url';
import type {LoadContext, Plugin} from '@docusaurus/types';
import {listPages, listSubjects, type LoadedPage} from './manifest/pages';
import {writeManifest} from './manifest/writeManifest';
import type {CheckedOptions} from './options';
import {readTranslations} from './translations';

export {validateOptions} from './options';
export type {Options} from './options';

/** The folder of the built site with the index and the program that searches it. */
const SEARCH_FOLDER = 'robotutor-search';

/**
 * Adds the panel to the site, unless the option `enabled` is false, and lists the site's pages in
 * `rag-manifest.json`, unless `manifest` is false. If the site names no service, the build also gets
 * the program that searches in the browser, for an index that `rag-pipeline export-search` writes.
 */
export default function themeRoboTutor(context: LoadContext, options: CheckedOptions): Plugin {
  const {baseUrl} = context;
  const {id: _id, enabled, manifest, ...settings} = options;
  const searches = enabled && !settings.serviceUrl;
  let pages: LoadedPage[] = [];
  return {
    name: 'docusaurus-theme-robotutor',
    ...(enabled && {
      getThemePath: () => './theme',
      getTypeScriptThemePath: () => '../src/theme',
      getDefaultCodeTranslationMessages: async () => readTranslations(context.i18n.currentLocale),
      // `docusaurus write-translations` looks for texts in these files.
      getPathsToWatch: () => ['./**/*.js'],
    }),
    ...((enabled || manifest) && {
      allContentLoaded: async ({allContent, actions}) => {
        pages = listPages(allContent);
        if (enabled) {
          actions.setGlobalData({
            ...settings,
            subjects: listSubjects(pages),
            ...(searches ? {searchUrl: `${baseUrl}${SEARCH_FOLDER}/`} : {}),
          });
        }
      },
    }),
    ...((manifest || searches) && {
      postBuild: async (props) => {
        if (searches) {
          const program = fileURLToPath(new URL('./static/program', import.meta.url));
          const folder = join(props.outDir, SEARCH_FOLDER);
          await cp(program, folder, {recursive: true});
          // The export of an index replaces the file, so that the panel need not guess.
          await writeFile(join(folder, 'manifest.json'), '{"index": null}\n');
        }
        if (manifest) {
          await writeManifest(pages, props);
        }
      },
    }),
  };
}
