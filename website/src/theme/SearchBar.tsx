import {useEffect, useRef, type ComponentProps, type ReactNode} from 'react';
import {useHistory, useLocation} from '@docusaurus/router';
import {usePluginData} from '@docusaurus/useGlobalData';
import SearchBar from '@theme-original/SearchBar';

/**
 * The search field, with the roles of its list of results put right, and below the results a link
 * that asks the panel.
 *
 * The plugin's list contains a link below the results, which a list box must not contain, and the
 * field does not say which list it controls.
 */
export default function AccessibleSearchBar(props: ComponentProps<typeof SearchBar>): ReactNode {
  const place = useRef<HTMLDivElement>(null);
  const {push} = useHistory();
  const {pathname} = useLocation();
  const panel = usePluginData('docusaurus-theme-robotutor') as {name: string} | undefined;
  const name = panel?.name;

  useEffect(() => {
    const bar = place.current;
    if (!bar) return undefined;
    const observer = new MutationObserver(() => {
      const found = correctRoles(bar);
      if (found && name) offerToAsk(found, name, (search) => push({pathname, search}));
    });
    observer.observe(bar, {childList: true, subtree: true});
    return () => observer.disconnect();
  }, [name, pathname, push]);

  return (
    <div ref={place} className="searchBar">
      <SearchBar {...props} />
    </div>
  );
}

interface Search {
  field: HTMLInputElement;
  menu: HTMLElement;
}

/** Makes the element around the results the list box, and names it in the field. */
function correctRoles(bar: HTMLElement): Search | null {
  const field = bar.querySelector<HTMLInputElement>('input[role="combobox"]');
  const menu = document.getElementById(field?.getAttribute('aria-owns') ?? '');
  if (!field || !menu) return null;
  const list = menu.querySelector('[role="option"]')?.parentElement ?? null;
  if (list && list !== menu) {
    list.id = `${menu.id}-results`;
    list.setAttribute('role', 'listbox');
    list.setAttribute('aria-label', field.getAttribute('aria-label') ?? '');
  }
  menu.setAttribute('role', 'presentation');
  field.setAttribute('aria-controls', list?.id ?? menu.id);
  return {field, menu};
}

/** Adds a link below the results that asks the panel what is in the field. */
function offerToAsk({field, menu}: Search, name: string, go: (search: string) => void): void {
  const question = field.value.trim();
  const before = menu.querySelector<HTMLAnchorElement>('.searchAsks');
  if (!question || before?.dataset.question === question) {
    return;
  }
  before?.remove();
  const link = document.createElement('a');
  link.className = 'searchAsks';
  link.dataset.question = question;
  link.href = `?${new URLSearchParams({ask: question}).toString()}`;
  link.textContent = `Ask ${name}: “${question}”`;
  link.addEventListener('mousedown', (event) => event.preventDefault()); // keeps the menu open
  link.addEventListener('click', (event) => {
    event.preventDefault();
    field.blur();
    go(new URL(link.href).search);
  });
  menu.append(link);
}
