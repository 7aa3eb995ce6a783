/** The places that a test's component went to. */
export const visited: string[] = [];

export const useLocation = (): Location => window.location;

export const useHistory = (): {push: (url: string) => void} => ({
  push: (url) => {
    visited.push(url);
    window.history.pushState(null, '', url);
  },
});
