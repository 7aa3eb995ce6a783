/** Another Docusaurus site with the packed theme, as a user of the package would have it. */

import {execFile} from 'node:child_process';
import {cp, mkdir, mkdtemp, readFile, realpath, rm, symlink, writeFile} from 'node:fs/promises';
import {tmpdir} from 'node:os';
import {dirname, join} from 'node:path';
import {fileURLToPath} from 'node:url';
import {promisify} from 'node:util';

import {WEBSITE} from '../browser/harness/site';

const run = promisify(execFile);

const SOURCES = join(dirname(fileURLToPath(import.meta.url)), 'site');
const THEME = 'docusaurus-theme-robotutor';

interface Manifest {
  dependencies: Record<string, string>;
  peerDependencies?: Record<string, string>;
}

/** A site in a folder of its own, outside of the repository. */
export interface OtherSite {
  dir: string;
  /** Runs a command of Docusaurus and returns its output. Throws with the output if it fails. */
  docusaurus: (...args: string[]) => Promise<string>;
  /** Changes the text of a file. */
  edit: (file: string, from: string, to: string) => Promise<void>;
  remove: () => Promise<void>;
}

/**
 * Makes the site and installs the packed theme.
 *
 * The site sees only packages that it or the theme declares, so a dependency that the theme forgot
 * to declare fails here.
 */
export async function makeOtherSite(): Promise<OtherSite> {
  const dir = await realpath(await mkdtemp(join(tmpdir(), 'robotutor-other-site-')));
  await cp(SOURCES, dir, {recursive: true});
  const theme = join(dir, 'node_modules', THEME);
  await unpackTheme(dir, theme);
  const [site, packed] = [await readManifest(dir), await readManifest(theme)];
  const declared = {...site.dependencies, ...packed.dependencies, ...packed.peerDependencies};
  for (const name of Object.keys(declared).filter((each) => each !== THEME)) {
    const link = join(dir, 'node_modules', name);
    await mkdir(dirname(link), {recursive: true});
    await symlink(join(WEBSITE, 'node_modules', name), link);
  }
  const program = join(WEBSITE, 'node_modules/@docusaurus/core/bin/docusaurus.mjs');
  return {
    dir,
    docusaurus: async (...args) => {
      const env = {...process.env, NO_COLOR: '1', NO_UPDATE_NOTIFIER: '1', NODE_ENV: undefined};
      try {
        const {stdout, stderr} = await run(process.execPath, [program, ...args], {cwd: dir, env});
        return stdout + stderr;
      } catch (error) {
        const {stdout, stderr} = error as {stdout: string; stderr: string};
        throw new Error(`docusaurus ${args.join(' ')} failed:\n${stdout}${stderr}`);
      }
    },
    edit: async (file, from, to) => {
      const path = join(dir, file);
      const text = await readFile(path, 'utf8');
      if (!text.includes(from)) {
        throw new Error(`${file} does not contain ${from}`);
      }
      await writeFile(path, text.replace(from, to));
    },
    remove: () => rm(dir, {recursive: true, force: true}),
  };
}

/** Packs the theme as `npm publish` would, and unpacks it as `npm install` would. */
async function unpackTheme(dir: string, target: string): Promise<void> {
  const args = ['pack', '--json', '--pack-destination', dir, '--workspace', THEME];
  await run('npm', args, {cwd: WEBSITE});
  const {version} = JSON.parse(
    await readFile(join(WEBSITE, 'packages', THEME, 'package.json'), 'utf8'),
  ) as {version: string};
  await mkdir(target, {recursive: true});
  const tarball = join(dir, `${THEME}-${version}.tgz`);
  await run('tar', ['-xzf', tarball, '-C', target, '--strip-components', '1']);
}

const readManifest = async (dir: string): Promise<Manifest> =>
  JSON.parse(await readFile(join(dir, 'package.json'), 'utf8')) as Manifest;
