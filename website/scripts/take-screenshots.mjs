// Takes the pictures of RoboTutor in `docs/assets/robotutor`.
//
//     node scripts/take-screenshots.mjs [NAME]
//
// Needs the built site, the service and Chromium, like the browser tests, whose harness it uses.
// With a name, only the pictures whose title contains it are taken.

import {dirname, join} from 'node:path';
import {fileURLToPath} from 'node:url';
import {startVitest} from 'vitest/node';

const root = join(dirname(fileURLToPath(import.meta.url)), '..');
const vitest = await startVitest('test', [], {
  root,
  config: join(root, 'vitest.config.ts'),
  watch: false,
  include: ['scripts/screenshots/**/*.shots.ts'],
  testNamePattern: process.argv[2],
});
await vitest.close();
