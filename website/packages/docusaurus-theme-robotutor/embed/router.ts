/** The address of the page, which has no router. */

export const useLocation = (): Location => window.location;
