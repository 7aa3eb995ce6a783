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
  try {
    return await known;
  } catch {
    found.delete(searchUrl); // it may only be offline now
    return false;
  }
}

/** Reads the manifest. The build of the theme writes one without an index, which the export replaces. */
async function findIndex(searchUrl: string): Promise<boolean> {
  const response = await fetch(`${searchUrl}manifest.json`);
  // A static host may answer every address with a page, which is not JSON.
  const manifest = (await response.json()) as {format?: unknown} | null;
  return response.ok && typeof manifest?.format === 'number';
}
