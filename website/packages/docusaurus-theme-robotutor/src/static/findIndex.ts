/** The choice between the service and the index of the site. */

const found = new Map<string, Promise<boolean>>();

/**
 * Returns true if questions go to the index of the site: the site names no service, and
 * `rag-pipeline export-search` wrote an index into it. It never throws.
 */
export async function usesIndex(settings: {
  serviceUrl: string;
  searchUrl?: string;
}): Promise<boolean> {
  const {serviceUrl, searchUrl} = settings;
  if (serviceUrl || !searchUrl) {
    return false;
  }
  const known = found.get(searchUrl) ?? findIndex(searchUrl);
  found.set(searchUrl, known);
  const isFound = await known;
  if (!isFound) {
    found.delete(searchUrl); // it may only be offline now
  }
  return isFound;
}

async function findIndex(searchUrl: string): Promise<boolean> {
  try {
    const response = await fetch(`${searchUrl}manifest.json`);
    // A static host may answer every address with a page.
    const manifest: unknown = response.ok ? await response.json() : null;
    return typeof (manifest as {format?: unknown} | null)?.format === 'number';
  } catch {
    return false;
  }
}
