/** Returns addresses as they are: `readAddress` has completed them. */
export const useBookUrl = (): ((url: string) => string) => (url) => url;
