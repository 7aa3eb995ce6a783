export const useBaseUrlUtils = (): {withBaseUrl: (url: string) => string} => ({
  withBaseUrl: (url) => url,
});
