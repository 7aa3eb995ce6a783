/** Opens the tabs and details that hide a place of a page. */

/** Returns the list of tabs to which a panel belongs, or `null`. */
function findTabList(panel: Element): Element | null {
  const outer = panel.parentElement?.closest('[role="tabpanel"]') ?? null;
  for (let box = panel.parentElement; box && box !== outer; box = box.parentElement) {
    const lists = Array.from(box.querySelectorAll('[role="tablist"]'));
    // A panel may contain other tabs.
    const own = lists.find((list) => list.closest('[role="tabpanel"]') === outer);
    if (own) return own;
  }
  return null;
}

/** Returns the tab that shows a panel, or `null`. */
export function findTab(panel: Element): HTMLElement | null {
  const named = document.getElementById(panel.getAttribute('aria-labelledby') ?? '');
  if (named) return named;
  const list = findTabList(panel);
  const tabs = Array.from(list?.querySelectorAll<HTMLElement>('[role="tab"]') ?? []);
  const siblings = Array.from(panel.parentElement?.children ?? []);
  const panels = siblings.filter((sibling) => sibling.getAttribute('role') === 'tabpanel');
  if (tabs.length === panels.length) return tabs[panels.indexOf(panel)] ?? null;
  // If panels are made when they are opened, only the selected tab has one.
  return tabs.find((tab) => tab.getAttribute('aria-selected') === 'true') ?? null;
}

/** Returns the panel that a tab shows, or `null`. */
function findPanel(tab: Element): Element | null {
  const named = document.getElementById(tab.getAttribute('aria-controls') ?? '');
  const box = tab.closest('[role="tablist"]')?.parentElement;
  const panels = Array.from(box?.querySelectorAll('[role="tabpanel"]') ?? []);
  return named ?? panels.find((panel) => findTab(panel) === tab) ?? null;
}

/**
 * Opens tabs by their labels, the outermost first.
 *
 * @param from - A node before the tabs. Tabs after it come first if several have the same label.
 * @returns The panel of the innermost tab that the page has; the root if it has none of them.
 */
export async function openTabs(
  root: Element,
  labels: readonly string[],
  from: Node | null,
): Promise<Element> {
  let inner = root;
  for (const label of labels) {
    const tabs = Array.from(inner.querySelectorAll('[role="tab"]')).filter(
      (tab) => tab.textContent?.trim() === label,
    );
    const isAfter = (tab: Element): boolean =>
      from !== null && (from.compareDocumentPosition(tab) & Node.DOCUMENT_POSITION_FOLLOWING) !== 0;
    const tab = tabs.find(isAfter) ?? tabs[0];
    if (!tab) break;
    await reveal(tab.firstChild ?? tab);
    inner = findPanel(tab) ?? inner;
  }
  return inner;
}

const isClosed = (details: HTMLDetailsElement): boolean =>
  !details.open || details.dataset.collapsed === 'true';

/** Waits for the next frame. A page in the background draws none, so the wait is short. */
export const nextFrame = (): Promise<void> =>
  new Promise((resolve) => {
    const timer = setTimeout(resolve, 100);
    requestAnimationFrame(() => {
      clearTimeout(timer);
      resolve();
    });
  });

/** Waits until the height of the page has stayed the same for a few frames. */
async function waitForLayout(): Promise<void> {
  let height = -1;
  for (let frame = 0, same = 0; frame < 60 && same < 3; frame += 1) {
    await nextFrame();
    const {scrollHeight} = document.documentElement;
    same = scrollHeight === height ? same + 1 : 0;
    height = scrollHeight;
  }
}

/**
 * Opens each tab and each details element around a node, the outermost first.
 *
 * Docusaurus keeps their state itself, so they are opened by a click as a reader would do.
 */
export async function reveal(node: Node): Promise<void> {
  const around: Element[] = [];
  for (let box = node.parentElement; box; box = box.parentElement) around.unshift(box);
  let isChanged = false;
  for (const box of around) {
    if (box instanceof HTMLDetailsElement && isClosed(box)) {
      const summary = box.querySelector<HTMLElement>(':scope > summary');
      const isInSummary = summary?.contains(node) ?? false;
      if (!isInSummary) {
        summary?.click();
        if (!box.open) box.open = true;
        isChanged = true;
      }
    } else if (box.matches('[role="tab"][aria-selected="false"]') && box instanceof HTMLElement) {
      box.click(); // the label itself was looked for
      isChanged = true;
    } else if (box.matches('[role="tabpanel"][hidden]')) {
      findTab(box)?.click();
      isChanged = true;
    }
  }
  if (isChanged) await waitForLayout();
}
