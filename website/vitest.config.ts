import {defineConfig} from 'vitest/config';

// The browser tests: the built site, the real service and Chromium. `make test-site` runs them.
// The theme package has unit tests and a configuration of its own.
export default defineConfig({
  test: {
    include: ['tests/browser/**/*.test.ts'],
    globalSetup: 'tests/browser/harness/setup.ts',
    // Two cores run Chromium and two services. More files at once would only slow each other down.
    fileParallelism: false,
    testTimeout: 60_000,
    hookTimeout: 180_000,
  },
});
