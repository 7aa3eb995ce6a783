/** Writes `rag-manifest.json`: where each Markdown file of the site became a page. */

import {createHash} from 'node:crypto';
import {readFile, writeFile} from 'node:fs/promises';
import {join} from 'node:path';
import logger from '@docusaurus/logger';
import type {Props} from '@docusaurus/types';
import {applyTrailingSlash} from '@docusaurus/utils-common';
import {readHeadings, type Heading} from './headings';
import type {LoadedPage} from './pages';

/** The name of the file in the folder of the built site. Each locale has its own. */
export const MANIFEST_FILE = 'rag-manifest.json';

/** Readers refuse a manifest with another number. */
export const FORMAT = 1;

/** A page of the manifest. */
export interface ManifestPage extends LoadedPage {
  /** SHA-256 of the Markdown file, in hexadecimal digits. */
  sourceHash: string;
  headings: Heading[];
}

/** The content of the file. */
export interface Manifest {
  format: typeof FORMAT;
  site: {
    title: string;
    url: string;
    baseUrl: string;
    /** Null if the configuration does not set it. */
    trailingSlash: boolean | null;
    locale: string;
    defaultLocale: string;
  };
  pages: ManifestPage[];
}

/**
 * Writes the manifest of one locale after its build.
 *
 * A page without a built file is left out with a warning. Another plugin may have replaced it.
 */
export async function writeManifest(loaded: LoadedPage[], props: Props): Promise<void> {
  const {siteConfig, i18n, siteDir, outDir, baseUrl} = props;
  const {trailingSlash} = siteConfig;
  const pages: ManifestPage[] = [];
  for (const found of loaded) {
    // Docusaurus adds or removes the slash at the end after the plugins have loaded their pages.
    const permalink = applyTrailingSlash(found.permalink, {trailingSlash, baseUrl});
    const page = {...found, permalink};
    const html = await readPage(page.permalink, baseUrl, outDir);
    if (html === null) {
      logger.warn(`The build has no page ${page.permalink}, so ${MANIFEST_FILE} leaves it out.`);
      continue;
    }
    const source = await readFile(join(siteDir, page.source));
    const sourceHash = createHash('sha256').update(source).digest('hex');
    pages.push({...page, sourceHash, headings: readHeadings(html)});
  }
  const manifest: Manifest = {
    format: FORMAT,
    site: {
      title: siteConfig.title,
      url: siteConfig.url,
      baseUrl,
      trailingSlash: trailingSlash ?? null,
      locale: i18n.currentLocale,
      defaultLocale: i18n.defaultLocale,
    },
    pages,
  };
  await writeFile(join(outDir, MANIFEST_FILE), `${JSON.stringify(manifest, null, 1)}\n`);
}

/** Returns the HTML of a page, or null if the build wrote no such page. */
async function readPage(
  permalink: string,
  baseUrl: string,
  outDir: string,
): Promise<string | null> {
  const path = decodeURI(permalink.slice(baseUrl.length)).replace(/\/$/, '');
  // The site's `trailingSlash` decides between the two names.
  for (const name of [`${path}/index.html`, `${path}.html`]) {
    try {
      return await readFile(join(outDir, name), 'utf8');
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') {
        throw error;
      }
    }
  }
  return null;
}
