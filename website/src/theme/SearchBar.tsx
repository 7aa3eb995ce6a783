import {useEffect, useRef, type ComponentProps, type ReactNode} from 'react';
import SearchBar from '@theme-original/SearchBar';

/**
 * The search field, with the roles of its list of results put right.
 *
 * The plugin's list contains a link below the results, which a list box must not contain, and the
 * field does not say which list it controls.
 */
export default function AccessibleSearchBar(props: ComponentProps<typeof SearchBar>): ReactNode {
  const place = useRef<HTMLDivElement>(null);

  useEffect(() => {
    const bar = place.current;
    if (!bar) return undefined;
    const observer = new MutationObserver(() => correctRoles(bar));
    observer.observe(bar, {childList: true, subtree: true});
    return () => observer.disconnect();
  }, []);

  return (
    <div ref={place} className="searchBar">
      <SearchBar {...props} />
    </div>
  );
}

/** Makes the element around the results the list box, and names it in the field. */
function correctRoles(bar: HTMLElement): void {
  const field = bar.querySelector('input[role="combobox"]');
  const menu = document.getElementById(field?.getAttribute('aria-owns') ?? '');
  if (!field || !menu) return;
  const list = menu.querySelector('[role="option"]')?.parentElement ?? null;
  if (list && list !== menu) {
    list.id = `${menu.id}-results`;
    list.setAttribute('role', 'listbox');
    list.setAttribute('aria-label', field.getAttribute('aria-label') ?? '');
  }
  menu.setAttribute('role', 'presentation');
  field.setAttribute('aria-controls', list?.id ?? menu.id);
}
