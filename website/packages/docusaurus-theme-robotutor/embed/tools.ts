/** The script tag offers no tools to agents. */
export const registerTools = (): void => undefined;
