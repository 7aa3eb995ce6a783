import {useColorMode} from '@docusaurus/theme-common';
// The panel is above the pages, and so above the provider in their layout. No public module has it.
import {ColorModeProvider} from '@docusaurus/theme-common/internal';
import {useEffect, type ReactNode} from 'react';

/** Gives components of the theme, such as code blocks, the page's color mode. */
export default function ColorMode({children}: {children: ReactNode}): ReactNode {
  return (
    <ColorModeProvider>
      <FollowPage />
      {children}
    </ColorModeProvider>
  );
}

/**
 * Follows a change of color mode by the attributes of `<html>`.
 *
 * The provider itself hears of a change only through the browser's storage, which may be blocked.
 */
function FollowPage(): null {
  const {setColorMode} = useColorMode();
  useEffect(() => {
    const {dataset} = document.documentElement;
    let seen = `${dataset.theme} ${dataset.themeChoice}`;
    const observer = new MutationObserver(() => {
      const now = `${dataset.theme} ${dataset.themeChoice}`;
      if (now === seen) {
        return; // the provider sets the attributes too
      }
      seen = now;
      const mode = dataset.theme === 'dark' ? 'dark' : 'light';
      setColorMode(dataset.themeChoice === 'system' ? null : mode);
    });
    const attributeFilter = ['data-theme', 'data-theme-choice'];
    observer.observe(document.documentElement, {attributeFilter});
    return () => observer.disconnect();
  }, [setColorMode]);
  return null;
}
