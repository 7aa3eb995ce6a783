/**
 * Puts a text on the clipboard.
 *
 * @param text - The text. While it is still loading, a promise: Safari allows copying only during
 *   the click.
 * @returns False if the browser did not allow it. Rejects if the text cannot be loaded.
 */
export async function copyText(text: string | Promise<string>): Promise<boolean> {
  try {
    await write(text);
    return true;
  } catch {
    return copySelected(await text);
  }
}

async function write(text: string | Promise<string>): Promise<void> {
  if (typeof text === 'string' || typeof ClipboardItem === 'undefined') {
    await navigator.clipboard.writeText(await text);
    return;
  }
  const blob = text.then((loaded) => new Blob([loaded], {type: 'text/plain'}));
  blob.catch(() => undefined);
  await navigator.clipboard.write([new ClipboardItem({'text/plain': blob})]);
  await blob;
}

/** Copies by the older way, which works without the permission that the first way needs. */
function copySelected(text: string): boolean {
  const focused = document.activeElement;
  const area = document.createElement('textarea');
  area.value = text;
  area.readOnly = true;
  area.style.cssText = 'position:fixed;inset-block-start:0;opacity:0';
  // Inside the focused part, so that a focus trap does not take the focus back.
  (focused?.parentElement ?? document.body).append(area);
  try {
    area.select();
    return document.execCommand('copy');
  } catch {
    return false;
  } finally {
    area.remove();
    if (focused instanceof HTMLElement) {
      focused.focus({preventScroll: true});
    }
  }
}
