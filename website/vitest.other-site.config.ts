import {defineConfig} from 'vitest/config';

// Builds another site with the packed theme. `make test-site` runs it after the browser tests.
export default defineConfig({
  test: {
    include: ['tests/other-site/*.test.ts'],
    testTimeout: 240_000,
    hookTimeout: 600_000,
  },
});
