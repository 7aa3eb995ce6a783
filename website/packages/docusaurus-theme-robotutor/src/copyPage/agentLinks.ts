/** Links that open a page, or the book's MCP server, in programs of other makers. */

/** Where the MCP server of the book is. */
export interface McpServer {
  /** A short name, by which a program lists the server. */
  name: string;
  url: string;
}

/** Returns the server of a book. Its name is made of the title of the site. */
export function describeServer(title: string, serviceUrl: string, origin: string): McpServer {
  const name = title
    .normalize('NFKD')
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .slice(0, 40)
    .replace(/^-+|-+$/g, '');
  return {name: name || 'book', url: `${new URL(serviceUrl || '/', origin).href.replace(/\/$/, '')}/mcp`};
}

/** Returns links that open a chat about a page by its Markdown file. `prompt` names the file. */
export const linkChats = (prompt: string): [name: string, url: string][] => {
  const text = encodeURIComponent(prompt);
  return [
    ['ChatGPT', `https://chatgpt.com/?hints=search&q=${text}`],
    ['Claude', `https://claude.ai/new?q=${text}`],
    ['Cursor', `https://cursor.com/link/prompt?text=${text}`],
  ];
};

/** Returns links that add the MCP server to an editor. */
export function linkEditors({name, url}: McpServer): [name: string, url: string][] {
  const cursor = new URLSearchParams({name, config: btoa(JSON.stringify({url}))});
  const code = JSON.stringify({name, type: 'http', url});
  return [
    ['Cursor', `cursor://anysphere.cursor-deeplink/mcp/install?${cursor.toString()}`],
    ['VS Code', `vscode:mcp/install?${encodeURIComponent(code)}`],
  ];
}

/** Returns the command that adds the MCP server to Claude Code. */
export const writeClaudeCommand = ({name, url}: McpServer): string =>
  `claude mcp add --transport http ${name} ${url}`;
