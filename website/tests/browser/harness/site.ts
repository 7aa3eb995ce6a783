/** The built site: where it is, and if it is up to date. */

import {readdirSync, statSync} from 'node:fs';
import {dirname, join, relative} from 'node:path';
import {fileURLToPath} from 'node:url';

/** The folder of the repository. */
export const REPOSITORY = join(dirname(fileURLToPath(import.meta.url)), '../../../..');

/** The folder of the site's sources. */
export const WEBSITE = join(REPOSITORY, 'website');

/** The folder of the built site. */
export const BUILD = join(WEBSITE, 'build');

// The files that the build reads. Other folders, such as the tests, do not change the site.
const SOURCES = [
  'docs',
  'src',
  'static',
  'packages',
  'docusaurus.config.ts',
  'sidebars.ts',
  'package-lock.json',
];
const IGNORED = new Set(['node_modules', 'tests', 'lib', 'dist', '.docusaurus']);

/** Throws if the site was not built, or if a source changed after the build. */
export function checkBuild(): void {
  const built = readTime(join(BUILD, 'index.html'));
  if (built === 0) {
    throw new Error('The site is not built: run `make site`.');
  }
  const newest = SOURCES.map((name) => findNewest(join(WEBSITE, name))).reduce(later);
  if (newest.time > built) {
    const name = relative(WEBSITE, newest.path);
    throw new Error(`The built site is older than ${name}: run \`make site\`.`);
  }
}

interface Dated {
  path: string;
  time: number;
}

function later(one: Dated, other: Dated): Dated {
  return one.time >= other.time ? one : other;
}

function findNewest(path: string): Dated {
  const stat = statSync(path, {throwIfNoEntry: false});
  if (!stat?.isDirectory()) {
    return {path, time: stat?.mtimeMs ?? 0};
  }
  return readdirSync(path)
    .filter((name) => !IGNORED.has(name))
    .map((name) => findNewest(join(path, name)))
    .reduce(later, {path, time: 0});
}

function readTime(path: string): number {
  return statSync(path, {throwIfNoEntry: false})?.mtimeMs ?? 0;
}
