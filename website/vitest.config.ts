import {defineConfig} from 'vitest/config';

/** Test files that run at the same time. Each worker has a scripted model of its own. */
export const WORKERS = 2;

// The browser tests: the built site, the real service and Chromium. `make test-site` runs them.
// The theme package has unit tests and a configuration of its own.
export default defineConfig({
  test: {
    include: ['tests/browser/**/*.test.ts'],
    globalSetup: 'tests/browser/harness/setup.ts',
    maxWorkers: WORKERS,
    minWorkers: 1,
    // The browser, the services and the other worker share the processor, which may be slow. No
    // limit is meant to be reached.
    expect: {poll: {timeout: 30_000}},
    // A browser on a busy machine can miss a moment. A fault of the panel fails both times.
    retry: 1,
    testTimeout: 240_000,
    hookTimeout: 300_000,
  },
});
